// Transfers the bytes of tensors between files and workers.
//
// A file is sent from its mapping. A tensor is received in ranges of one version, into a file that gets its name only
// when it is complete. No buffer has the size of a tensor.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "http/api/tensors/tensors.hpp"
#include "http/auth/credentials.hpp"
#include "http/client/client.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/files/tensor_file.hpp"

namespace chorus::cli {

// A worker as the coordinator reported it: `url` has passed check_coordinator_url.
struct WorkerAddress {
  std::string worker;
  std::string url;
};

// Returns a path like "/v1/tensors/grad%2F0".
[[nodiscard]] std::string tensor_path(std::string_view name);

// Adds the worker's name to a failure. A worker that cannot be reached is a failed command, not an unreachable
// coordinator.
[[nodiscard]] Failure failed_at(WorkerAddress const& place, Failure failure);

struct Transferred {
  api::TensorInfo tensor;
  double seconds = 0;
};

// Runs on the calling thread, one transfer at a time, with progress on standard error. During its life SIGINT, SIGTERM
// and SIGHUP end the transfer instead of the process, unless they were ignored; then call pass_signal_on().
class TensorTransfer {
 public:
  explicit TensorTransfer(Session const& session);
  ~TensorTransfer();
  TensorTransfer(TensorTransfer const&) = delete;
  TensorTransfer& operator=(TensorTransfer const&) = delete;

  // Errors: AuthErrc, if a file of the session's credentials cannot be used.
  [[nodiscard]] Status open() { return credentials_.open(); }

  // Makes the tensor's next version on the worker, on `device` if given. Failures: every refusal of the worker, also
  // before all bytes were sent; worker_unreachable; deadline_exceeded; precondition_failed if the file was written to
  // meanwhile.
  [[nodiscard]] Reply<Transferred> put(WorkerAddress const& place, std::string const& name, TensorFile const& file,
                                       std::optional<std::string> const& device, std::chrono::milliseconds timeout);

  // Writes `tensor`, as the worker has listed it, into a new file at this path, or over an existing one if
  // `overwrites`, or to standard output for "-". A path that ends in .npy gets a .npy file. Failures: as in put();
  // precondition_failed if the tensor has changed since it was listed; unsupported for bf16 in .npy; internal if the
  // file cannot be written. After a failure no file is left.
  [[nodiscard]] Reply<Transferred> get(WorkerAddress const& place, api::TensorInfo const& tensor,
                                       std::string const& path, bool overwrites, std::chrono::milliseconds timeout);

  // Ends the process with the signal that has ended a transfer, if any. Everything is cleaned up before.
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
