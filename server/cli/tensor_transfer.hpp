// The bytes of tensors between files and workers.
//
// A file is sent from where it is mapped. A tensor comes in ranges of one version of it into a file that has its name
// only when it is whole. Nothing of the size of a tensor is ever held in memory.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "http/api/tensors.hpp"
#include "http/auth/credentials.hpp"
#include "http/client.hpp"
#include "server/cli/client.hpp"
#include "server/cli/tensor_file.hpp"

namespace chorus::cli {

// A worker as the coordinator gave it: `url` has passed check_coordinator_url.
struct WorkerAddress {
  std::string worker;
  std::string url;
};

// "/v1/tensors/grad%2F0"
[[nodiscard]] std::string tensor_path(std::string_view name);

// A worker that cannot be reached is not the coordinator: the command has failed, and the problem names the worker.
[[nodiscard]] Failure failed_at(WorkerAddress const& place, Failure failure);

struct Transferred {
  api::TensorInfo tensor;
  double seconds = 0;
};

// On the calling thread, one transfer at a time, with progress on standard error. While it lives, SIGINT, SIGTERM and
// SIGHUP end the transfer instead of the process, unless they were ignored: then pass_signal_on().
class TensorTransfer {
 public:
  explicit TensorTransfer(Session const& session);
  ~TensorTransfer();
  TensorTransfer(TensorTransfer const&) = delete;
  TensorTransfer& operator=(TensorTransfer const&) = delete;

  // Errors: AuthErrc: a file of the session's credentials cannot be used.
  [[nodiscard]] Status open() { return credentials_.open(); }

  // The tensor's next version there, on that device if one is named. Failures: whatever the worker refuses, also before
  // all was sent; worker_unreachable, deadline_exceeded, and precondition_failed if the file was written to meanwhile.
  [[nodiscard]] Reply<Transferred> put(WorkerAddress const& place, std::string const& name, TensorFile const& file,
                                       std::optional<std::string> const& device, std::chrono::milliseconds timeout);

  // `tensor`, as the worker has listed it, into a new file of this path, or over what is there. A path that ends in
  // .npy gets a .npy file. Failures: as put(); precondition_failed if the tensor is or becomes another one than was
  // listed; unsupported for bf16 in .npy; internal if the file cannot be written. No file is left then.
  [[nodiscard]] Reply<Transferred> get(WorkerAddress const& place, api::TensorInfo const& tensor,
                                       std::string const& path, bool overwrites, std::chrono::milliseconds timeout);

  // Ends the process by the signal that has ended a transfer, if one has: everything is cleared away by then.
  void pass_signal_on();

 private:
  struct Range;

  [[nodiscard]] Result<http::Answer> send(http::Call call, http::TimePoint deadline);
  [[nodiscard]] std::optional<Failure> receive(Range& range, std::span<std::byte> destination);
  [[nodiscard]] bool is_interrupted();

  boost::asio::io_context io_{1};
  http::Credentials credentials_;
  http::Client client_;
  boost::asio::signal_set signals_;
  int signal_ = 0;
};

}  // namespace chorus::cli
