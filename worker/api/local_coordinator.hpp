// A coordinator of a program's own.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collectives/core/result.hpp"

namespace chorus {

struct CoordinatorOptions {
  // Path of chorus-coordinator; "": the one in the folder CHORUS_BIN, else beside this library or program or in ../bin
  // from there, else on PATH.
  std::string program;
  std::string host = "127.0.0.1";      // to listen on
  std::uint16_t port = 0;              // 0: the system picks one
  std::vector<std::string> arguments;  // further ones: docs/reference/cli/chorus-coordinator.md
};

// A coordinator in a process of its own, for programs that find each other by other means: one of them starts it, and
// tells the others its URL. It ends with this object, by SIGTERM, and with the program, however that ends. Any thread.
class LocalCoordinator {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Returns when it listens. Its log goes to standard error; errors only, unless `arguments` say otherwise. Errors:
  // WorkerErrc::no_coordinator: the program was not found, has ended, or did not listen until the deadline.
  [[nodiscard]] static Result<LocalCoordinator> start(CoordinatorOptions const& options, TimePoint deadline);

  ~LocalCoordinator();  // waits for its end; after 10 s it is killed
  LocalCoordinator(LocalCoordinator&&) noexcept;
  LocalCoordinator& operator=(LocalCoordinator&&) noexcept;

  [[nodiscard]] std::string const& url() const;

 private:
  class Process;
  explicit LocalCoordinator(std::unique_ptr<Process> process);
  std::unique_ptr<Process> process_;
};

}  // namespace chorus
