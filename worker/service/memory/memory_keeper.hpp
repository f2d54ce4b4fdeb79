// Returns memory that the worker keeps for later tensors to the system: after a while, and soon if a process on this
// host has no room in /dev/shm. Shows those that read this worker's memory that it lives.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/runtime/side_thread.hpp"
#include "base/runtime/task_group.hpp"
#include "worker/memory/arena.hpp"
#include "worker/tensors/memory.hpp"

namespace spdlog {
class logger;
}

namespace chorus::service {

// Used on the control thread only; a thread of its own frees the memory.
class MemoryKeeper {
 public:
  struct Patience {
    std::chrono::milliseconds period{1000};
    // How long memory may stay idle. Allocating it again costs up to some seconds per GiB.
    std::chrono::milliseconds idle{30000};
    // The same for some seconds after a process lacked room, and while less than an eighth of /dev/shm is free.
    std::chrono::milliseconds idle_in_shortage{1000};
    std::chrono::milliseconds shortage{5000};
  };

  // arena: null if no memory is shared. `instead`: see SideThread.
  MemoryKeeper(boost::asio::any_io_executor executor, tensors::Pool& pool, std::shared_ptr<memory::Arena const> arena,
               spdlog::logger& log, Patience patience, boost::asio::any_io_executor instead = {});

  void start();
  boost::asio::awaitable<void> stop();

  // What is slower for lack of room in /dev/shm; empty if nothing is.
  [[nodiscard]] std::optional<std::string> complaint() const;

 private:
  boost::asio::awaitable<void> watch();
  void beat();
  [[nodiscard]] bool is_short();
  void give_back();
  void say_once();

  boost::asio::any_io_executor executor_;
  tensors::Pool& pool_;
  std::shared_ptr<memory::Arena const> const arena_;
  spdlog::logger& log_;
  Patience const patience_;
  std::uint32_t lacks_seen_;
  std::chrono::steady_clock::time_point short_until_;
  bool is_said_ = false;
  std::atomic<bool> is_busy_{false};
  http::TaskGroup tasks_;
  http::SideThread thread_;
};

}  // namespace chorus::service
