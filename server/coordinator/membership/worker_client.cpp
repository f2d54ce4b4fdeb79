#include "server/coordinator/membership/worker_client.hpp"

#include <bit>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/json/json.hpp"
#include "http/wire/errc.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;

constexpr auto pause_before_repeating = std::chrono::milliseconds(50);

std::string run_url(std::string const& url, std::uint64_t run) { return url + "/v1/runs/" + std::to_string(run); }

template <class Message>
http::Checked<Message> read(http::Answer const& answer) {
  if (!answer.ok()) return answer.problem();
  return http::decode<Message>(answer.body, http::UnknownFields::ignore);
}

std::string shard_url(std::string const& url, std::string const& parameter, std::uint32_t shard) {
  return url + api::parameter_path(parameter) + "/shards/" + std::to_string(shard);
}

http::Checked<bool> read_nothing(http::Answer const& answer) {
  if (!answer.ok()) return answer.problem();
  return true;
}

}  // namespace

std::string percent_encoded(std::string_view text) {
  constexpr char digits[] = "0123456789ABCDEF";
  std::string encoded;
  for (char c : text) {
    auto const byte = static_cast<unsigned char>(c);
    auto const plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    if (plain)
      encoded += c;
    else
      encoded += {'%', digits[byte >> 4], digits[byte & 15]};
  }
  return encoded;
}

asio::awaitable<Status> WorkerClient::probe(std::string url, http::TimePoint deadline) {
  http::Call call;
  call.url = url + "/livez";
  call.answer_limit_bytes = 64 << 10;
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  if (!answer.value().ok())
    co_return Error(http::HttpErrc::malformed,
                    url + "/livez answered with status " + std::to_string(answer.value().status));
  co_return ok();
}

asio::awaitable<WorkerClient::Said<api::ProbeReport>> WorkerClient::measure(std::string url, api::ProbeRequest to,
                                                                            http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::post;
  call.url = url + "/v1/probes";
  call.body = http::encode(to);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::ProbeReport>(answer.value());
}

asio::awaitable<WorkerClient::Said<api::TensorList>> WorkerClient::list_tensors(std::string url, std::string prefix,
                                                                                http::TimePoint deadline) {
  http::Call call;
  call.url = url + "/v1/tensors?limit=100&prefix=" + percent_encoded(prefix);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::TensorList>(answer.value());
}

asio::awaitable<Result<http::Answer>> WorkerClient::look_at_tensor(std::string url, std::string tensor,
                                                                   http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::head;
  call.url = url + "/v1/tensors/" + percent_encoded(tensor);
  co_return co_await client_.send(std::move(call), deadline);
}

asio::awaitable<WorkerClient::Said<api::RunReport>> WorkerClient::run(std::string url, api::RunRequest request,
                                                                      std::optional<http::TraceContext> trace,
                                                                      http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::put;
  call.url = run_url(url, request.run);
  call.body = http::encode(request);
  if (trace) call.fields.set("traceparent", http::to_traceparent(*trace));
  at("run: before it is sent");
  auto const answer = co_await client_.send(std::move(call), deadline);
  at("run: answered");
  if (answer.has_error()) co_return answer.error();
  co_return read<api::RunReport>(answer.value());
}

asio::awaitable<WorkerClient::Said<std::uint64_t>> WorkerClient::commit(std::string url, std::uint64_t run,
                                                                        http::TimePoint deadline) {
  for (;;) {
    http::Call call;
    call.method = http::Method::post;
    call.url = run_url(url, run) + "/commit";
    at("commit: before it is sent");
    auto const answer = co_await client_.send(std::move(call), deadline);
    at("commit: answered");
    if (answer.has_value()) {
      auto const committed = read<api::CommitAnswer>(answer.value());
      if (committed.has_error()) co_return http::Checked<std::uint64_t>(committed.error());
      co_return http::Checked<std::uint64_t>(committed.value().version);
    }
    if (std::chrono::steady_clock::now() + pause_before_repeating >= deadline) co_return answer.error();
    asio::steady_timer pause(co_await asio::this_coro::executor, pause_before_repeating);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

asio::awaitable<WorkerClient::Said<bool>> WorkerClient::put_tensor(std::string url, std::string tensor,
                                                                   std::vector<std::int32_t> const& elements,
                                                                   http::TimePoint deadline) {
  static_assert(std::endian::native == std::endian::little, "tensors travel in little-endian order");
  http::Call call;
  call.method = http::Method::put;
  call.url = url + "/v1/tensors/" + percent_encoded(tensor);
  call.fields.set("Content-Type", "application/octet-stream");
  call.fields.set("Tensor-Dtype", "i32");
  call.fields.set("Tensor-Shape", std::to_string(elements.size()));
  call.payload = std::as_bytes(std::span(elements));
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read_nothing(answer.value());
}

asio::awaitable<WorkerClient::Said<api::PeerLinkList>> WorkerClient::list_links(std::string url,
                                                                                http::TimePoint deadline) {
  http::Call call;
  call.url = url + "/v1/links";
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::PeerLinkList>(answer.value());
}

asio::awaitable<WorkerClient::Said<api::RunStatus>> WorkerClient::look_at_run(std::string url, std::uint64_t run,
                                                                              http::TimePoint deadline) {
  http::Call call;
  call.url = run_url(url, run);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::RunStatus>(answer.value());
}

asio::awaitable<WorkerClient::Said<api::RunProgress>> WorkerClient::look_at_progress(std::string url, std::uint64_t run,
                                                                                     http::TimePoint deadline) {
  http::Call call;
  call.url = run_url(url, run) + "/progress";
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::RunProgress>(answer.value());
}

asio::awaitable<WorkerClient::Said<api::FlightList>> WorkerClient::flights_of(std::string url, std::uint64_t run,
                                                                              http::TimePoint deadline) {
  http::Call call;
  call.url = url + "/v1/flight?limit=1&run=" + std::to_string(run);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::FlightList>(answer.value());
}

asio::awaitable<WorkerClient::Said<api::ClockReading>> WorkerClient::read_clock(std::string url,
                                                                                http::TimePoint deadline) {
  http::Call call;
  call.url = url + "/v1/clock";
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::ClockReading>(answer.value());
}

asio::awaitable<void> WorkerClient::abort(std::string url, std::uint64_t run, http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::delete_;
  call.url = run_url(url, run);
  at("abort: before it is sent");
  (void)co_await client_.send(std::move(call), deadline);
}

asio::awaitable<WorkerClient::Said<bool>> WorkerClient::assign(std::shared_ptr<EpochMessage const> message,
                                                               api::Member to, http::TimePoint deadline) {
  auto const end = message->end_for(to);
  http::Call call;
  call.method = http::Method::put;
  call.url = to.url + "/v1/groups/" + percent_encoded(message->name());
  call.fields.set("Content-Type", "application/json");
  call.payload = std::as_bytes(std::span(message->beginning()));
  call.payload_rest = std::as_bytes(std::span(end));
  at("epoch: before it is sent");
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read_nothing(answer.value());
}

asio::awaitable<WorkerClient::Said<bool>> WorkerClient::assign_shard(std::string url, api::ShardAssignment assignment,
                                                                     http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::put;
  call.url = shard_url(url, assignment.parameter.name, assignment.shard);
  call.body = http::encode(assignment);
  at("shard: before it is assigned");
  auto const answer = co_await client_.send(std::move(call), deadline);
  at("shard: after it was assigned");
  if (answer.has_error()) co_return answer.error();
  co_return read_nothing(answer.value());
}

asio::awaitable<WorkerClient::Said<api::ShardAssignmentOutcomeList>> WorkerClient::assign_shards(
    std::string url, std::vector<std::string_view> assignments, http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::post;
  call.url = url + "/v1/shards";
  call.body = "{\"items\":[";
  for (auto const text : assignments) call.body.append(text).push_back(',');
  call.body.back() = ']';
  call.body += '}';
  at("shard: before it is assigned");
  auto const answer = co_await client_.send(std::move(call), deadline);
  at("shard: after it was assigned");
  if (answer.has_error()) co_return answer.error();
  auto outcomes = read<api::ShardAssignmentOutcomeList>(answer.value());
  if (outcomes.has_value() && outcomes.value().items.size() != assignments.size())
    co_return Error(http::HttpErrc::malformed, url + " answered " + std::to_string(outcomes.value().items.size()) +
                                                   " outcomes of " + std::to_string(assignments.size()));
  co_return outcomes;
}

asio::awaitable<WorkerClient::Said<api::ShardStatus>> WorkerClient::look_at_shard(std::string url,
                                                                                  std::string parameter,
                                                                                  std::uint32_t shard,
                                                                                  http::TimePoint deadline) {
  http::Call call;
  call.url = shard_url(url, parameter, shard);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::ShardStatus>(answer.value());
}

asio::awaitable<WorkerClient::Said<api::ShardStatusList>> WorkerClient::list_shards(std::string url, std::string cursor,
                                                                                    http::TimePoint deadline) {
  http::Call call;
  call.url = url + "/v1/parameters?limit=1000" + (cursor.empty() ? "" : "&cursor=" + percent_encoded(cursor));
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::ShardStatusList>(answer.value());
}

asio::awaitable<WorkerClient::Said<bool>> WorkerClient::drop_shard(std::string url, std::string parameter,
                                                                   std::uint32_t shard, std::uint32_t epoch,
                                                                   http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::delete_;
  call.url = shard_url(url, parameter, shard) + "?epoch=" + std::to_string(epoch);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read_nothing(answer.value());
}

asio::awaitable<WorkerClient::Said<std::uint64_t>> WorkerClient::next_checkpoint(std::string url, std::string name,
                                                                                 http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::post;
  call.url = url + "/v1/checkpoints/" + name + "/numbers";
  co_return co_await number(std::move(call), deadline);
}

asio::awaitable<WorkerClient::Said<std::uint64_t>> WorkerClient::newest_checkpoint(std::string url, std::string name,
                                                                                   http::TimePoint deadline) {
  http::Call call;
  call.url = url + "/v1/checkpoints/" + percent_encoded(name);
  co_return co_await number(std::move(call), deadline);
}

asio::awaitable<WorkerClient::Said<std::uint64_t>> WorkerClient::number(http::Call call, http::TimePoint deadline) {
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  auto const read_number = read<api::CheckpointNumber>(answer.value());
  if (read_number.has_error()) co_return http::Checked<std::uint64_t>(read_number.error());
  co_return http::Checked<std::uint64_t>(read_number.value().number);
}

asio::awaitable<WorkerClient::Said<api::CheckpointPlaces>> WorkerClient::say_places(std::string url,
                                                                                    api::CheckpointPlaces places,
                                                                                    http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::post;
  call.url = std::move(url);
  call.body = http::encode(places);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read<api::CheckpointPlaces>(answer.value());
}

asio::awaitable<WorkerClient::Said<api::CheckpointPlaces>> WorkerClient::hold_shards(std::string url, std::string name,
                                                                                     api::CheckpointPlaces shards,
                                                                                     http::TimePoint deadline) {
  co_return co_await say_places(url + "/v1/checkpoints/" + name + "/holds", std::move(shards), deadline);
}

asio::awaitable<WorkerClient::Said<api::CheckpointPlaces>> WorkerClient::take_images(std::string url, std::string name,
                                                                                     api::CheckpointPlaces places,
                                                                                     http::TimePoint deadline) {
  co_return co_await say_places(url + "/v1/checkpoints/" + name + "/images", std::move(places), deadline);
}

asio::awaitable<WorkerClient::Said<std::string>> WorkerClient::write_checkpoint(std::string url, std::string name,
                                                                                api::CheckpointFile file,
                                                                                http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::post;
  call.url = url + "/v1/checkpoints/" + name + "/files";
  call.body = http::encode(file);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  auto part = read<api::CheckpointPart>(answer.value());
  if (part.has_error()) co_return http::Checked<std::string>(part.error());
  co_return http::Checked<std::string>(std::move(part.value().manifest));
}

asio::awaitable<WorkerClient::Said<bool>> WorkerClient::discard_checkpoint(std::string url, std::string name,
                                                                           std::uint64_t number,
                                                                           http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::delete_;
  call.url = url + "/v1/checkpoints/" + name + "/files/" + std::to_string(number);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read_nothing(answer.value());
}

asio::awaitable<WorkerClient::Said<bool>> WorkerClient::commit_checkpoint(std::string url, std::string name,
                                                                          api::CheckpointCommit commit,
                                                                          http::TimePoint deadline) {
  http::Call call;
  call.method = http::Method::post;
  call.url = url + "/v1/checkpoints/" + name + "/commit";
  call.body = http::encode(commit);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (answer.has_error()) co_return answer.error();
  co_return read_nothing(answer.value());
}

}  // namespace chorus::coordinator
