#include "server/cli/files/tensor_transfer.hpp"

#include <signal.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>

#include "http/json/json.hpp"
#include "http/wire/errc.hpp"
#include "server/cli/files/npy.hpp"
#include "server/cli/files/part_file.hpp"
#include "server/cli/output/transfer_progress.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

namespace asio = boost::asio;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t range_bytes = 64 << 20;

http::TlsFiles tls_files(Credentials const& credentials) {
  return {credentials.tls_certificate, credentials.tls_key, credentials.tls_authorities, false};
}

asio::awaitable<void> keep(asio::awaitable<Result<http::Answer>> task, std::optional<Result<http::Answer>>& kept) {
  auto answer = co_await std::move(task);
  kept.emplace(std::move(answer));
}

Failure failure(WorkerAddress const& place, ProblemCode code, std::string const& what) {
  return failed_at(place, {.problem = {code, what}});
}

Failure unanswered(WorkerAddress const& place, Error const& error) {
  auto const is_late = error.code == http::HttpErrc::timed_out;
  return failure(place, is_late ? ProblemCode::deadline_exceeded : ProblemCode::worker_unreachable, error.detail);
}

Failure changed(WorkerAddress const& place, api::TensorInfo const& tensor) {
  return failure(
      place, ProblemCode::precondition_failed,
      "tensor " + tensor.name + " changed while it was read: it was at version " + std::to_string(tensor.version));
}

Failure not_written(Error const& error) { return {.problem = {ProblemCode::internal, error.detail}, .is_local = true}; }

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

std::string head_of(api::TensorInfo const& tensor, std::string const& path) {
  if (!is_npy_name(path)) return {};
  auto const dtype = parse_dtype(tensor.dtype);
  return dtype ? npy_head(*dtype, tensor.shape).value_or("") : "";
}

}  // namespace

// State of a get: the next byte, and the representation.
struct TensorTransfer::Range {
  WorkerAddress const& place;
  api::TensorInfo const& tensor;
  http::TimePoint deadline;
  TransferProgress& progress;
  std::uint64_t first = 0;
  std::string tag = {};  // of the first answer; all other answers must have it
};

std::string tensor_path(std::string_view name) { return "/v1/tensors/" + percent_encode(name); }

Failure failed_at(WorkerAddress const& place, Failure failure) {
  failure.problem.detail = "worker '" + place.worker + "': " + failure.problem.detail;
  if (!failure.reachable) failure.problem.code = ProblemCode::worker_unreachable;
  failure.reachable = true;
  return failure;
}

TensorTransfer::TensorTransfer(Session const& session)
    : credentials_(session.credentials.token_file, tls_files(session.credentials)),
      client_(io_.get_executor(), &credentials_),
      signals_(io_) {
  for (auto const number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) signals_.add(number);
  }
  signals_.async_wait([this](boost::system::error_code const& error, int number) {
    if (error) return;
    signal_ = number;
    signals_.clear();  // a second signal ends the process at once
    client_.close();
  });
}

TensorTransfer::~TensorTransfer() = default;

void TensorTransfer::pass_signal_on() {
  if (signal_ != 0) ::raise(signal_);
}

bool TensorTransfer::is_interrupted() {
  io_.restart();
  io_.poll();
  return signal_ != 0;
}

Result<http::Answer> TensorTransfer::send(http::Call call, http::TimePoint deadline) {
  std::optional<Result<http::Answer>> answer;
  asio::co_spawn(io_, keep(client_.send(std::move(call), deadline), answer), [](std::exception_ptr const& failure) {
    if (failure) std::rethrow_exception(failure);
  });
  io_.restart();
  while (!answer) io_.run_one();
  return std::move(*answer);
}

Reply<Transferred> TensorTransfer::put(WorkerAddress const& place, std::string const& name, TensorFile const& file,
                                       std::optional<std::string> const& device, std::chrono::milliseconds timeout) {
  auto const began = Clock::now();
  TransferProgress progress(name + " to " + place.worker, file.elements().size(), began);
  http::Call call;
  call.method = http::Method::put;
  call.url = place.url + tensor_path(name);
  call.fields.add("Tensor-Dtype", std::string(chorus::name(file.dtype())));
  call.fields.add("Tensor-Shape", format_shape(file.shape()));
  if (device) call.fields.add("Tensor-Device", *device);
  call.fields.add("Content-Type", "application/octet-stream");
  call.payload = file.elements();
  call.on_sent = [&progress](std::uint64_t sent_bytes) { progress.show(sent_bytes, Clock::now()); };
  auto const answer = send(std::move(call), began + timeout);
  auto const seconds = seconds_since(began);
  if (!answer) return unanswered(place, answer.error());
  if (!answer->ok()) return failed_at(place, {.problem = answer->problem()});
  if (file.has_changed())
    return failure(place, ProblemCode::precondition_failed,
                   "the file was written to while it was sent: " + name + " may hold some of it as it was before");
  auto tensor = http::decode<api::TensorInfo>(answer->body, http::UnknownFields::ignore);
  if (!tensor) return failure(place, ProblemCode::internal, "its answer is not understood: " + tensor.error().detail);
  return Transferred{std::move(*tensor), seconds};
}

Reply<Transferred> TensorTransfer::get(WorkerAddress const& place, api::TensorInfo const& tensor,
                                       std::string const& path, bool overwrites, std::chrono::milliseconds timeout) {
  auto const head = head_of(tensor, path);
  if (is_npy_name(path) && head.empty())
    return failure(place, ProblemCode::unsupported,
                   "there are no .npy files of " + tensor.dtype + ": any other name gets the elements alone");
  auto part = is_standard(path) ? PartFile::of_standard_output() : PartFile::create(path, overwrites);
  if (!part) return not_written(part.error());
  if (auto const written = part->append(std::as_bytes(std::span(head))); !written) return not_written(written.error());

  auto const began = Clock::now();
  TransferProgress progress(tensor.name + " from " + place.worker, tensor.bytes, began);
  Range range{place, tensor, began + timeout, progress};
  auto const room_bytes = std::min(tensor.bytes, range_bytes);
  auto const room = std::make_unique_for_overwrite<std::byte[]>(room_bytes);
  while (range.first < tensor.bytes) {
    std::span const bytes(room.get(), std::min(room_bytes, tensor.bytes - range.first));
    if (auto const failed = receive(range, bytes)) return *failed;
    if (auto const written = part->append(bytes); !written) return not_written(written.error());
    range.first += bytes.size();
  }
  if (is_interrupted()) return failure(place, ProblemCode::cancelled, "interrupted");
  if (auto const finished = part->finish(); !finished) return not_written(finished.error());
  return Transferred{tensor, seconds_since(began)};
}

std::optional<Failure> TensorTransfer::receive(Range& range, std::span<std::byte> destination) {
  auto const& [place, tensor, deadline, progress, first, tag] = range;
  auto const part = std::to_string(first) + "-" + std::to_string(first + destination.size() - 1);
  http::Call call;
  call.url = place.url + tensor_path(tensor.name);
  call.fields.add("Range", "bytes=" + part);
  if (!tag.empty()) call.fields.add("If-Match", tag);
  call.destination = destination;
  call.on_received = [&range](std::uint64_t received_bytes) {
    range.progress.show(range.first + received_bytes, Clock::now());
  };
  auto const answer = send(std::move(call), deadline);
  if (!answer) return unanswered(place, answer.error());
  constexpr unsigned precondition_failed = 412, range_not_satisfiable = 416;
  if (answer->status == precondition_failed || answer->status == range_not_satisfiable) return changed(place, tensor);
  if (!answer->ok()) return failed_at(place, {.problem = answer->problem()});

  auto const& fields = answer->fields;
  auto const is_same = fields.find("Tensor-Version") == std::to_string(tensor.version) &&
                       fields.find("Content-Range") == "bytes " + part + "/" + std::to_string(tensor.bytes);
  if (answer->status == 206 && !is_same) return changed(place, tensor);
  if (answer->status != 206 || answer->received_bytes != destination.size())
    return failure(place, ProblemCode::internal,
                   "it answered with status " + std::to_string(answer->status) + " and " +
                       std::to_string(answer->received_bytes) + " bytes where bytes " + part + " were asked for");
  if (range.tag.empty()) range.tag = fields.find("ETag").value_or("");
  return std::nullopt;
}

}  // namespace chorus::cli
