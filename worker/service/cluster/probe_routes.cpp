#include "worker/service/cluster/probe_routes.hpp"

#include <algorithm>
#include <chrono>

#include "http/api/cluster/membership.hpp"
#include "worker/service/requests/json_body.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr int round_trips = 8;  // the first one opens the connection
constexpr int transfers = 3;
constexpr std::uint64_t first_transfer_bytes = 256 << 10;
constexpr double long_enough_s = 0.1;  // for a transfer to show the link's speed despite other delays
constexpr double too_long_to_repeat_s = 0.5;
constexpr std::chrono::seconds probe_patience{3};

// The shortest time of several requests for `bytes` bytes.
awaitable<Result<double>> shortest(http::Client* client, std::string url, steady_clock::time_point deadline,
                                   std::uint64_t bytes, int times) {
  auto best = std::chrono::duration<double>::max();
  for (int n = 0; n < times; ++n) {
    http::Call call;
    call.url = url + "/v1/probe?bytes=" + std::to_string(bytes);
    call.answer_limit_bytes = max_probe_bytes;
    auto const begin = steady_clock::now();
    auto const answer = co_await client->send(std::move(call), deadline);
    if (!answer) co_return answer.error();
    if (!answer->ok() || answer->body.size() != bytes)
      co_return Error(std::make_error_code(std::errc::protocol_error), url + " does not answer probes");
    best = std::min(best, std::chrono::duration<double>(steady_clock::now() - begin));
  }
  co_return best.count();
}

struct Transfer {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

// Doubles the size until a transfer takes long enough, up to max_probe_bytes: a slow or busy link must be measured
// within the deadline too. Returns the shortest of several times, unless one takes very long.
awaitable<Result<Transfer>> transfer_over(http::Client* client, std::string url, steady_clock::time_point deadline) {
  Transfer transfer{first_transfer_bytes, 0};
  for (;;) {
    auto const once = co_await shortest(client, url, deadline, transfer.bytes, 1);
    if (!once) co_return once.error();
    transfer.seconds = *once;
    if (*once >= long_enough_s || transfer.bytes == max_probe_bytes) break;
    transfer.bytes = std::min(4 * transfer.bytes, max_probe_bytes);
  }
  if (transfer.seconds > too_long_to_repeat_s) co_return transfer;
  auto const again = co_await shortest(client, url, deadline, transfer.bytes, transfers - 1);
  if (!again) co_return again.error();
  transfer.seconds = std::min(transfer.seconds, *again);
  co_return transfer;
}

}  // namespace

void ProbeRoutes::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/probe", http::Access::join,
             [this](http::Request const& request, http::Body&) { return answer(request); });
  router.add(http::Method::post, "/v1/probes", http::Access::join,
             [this](http::Request const&, http::Body& body) { return measure(body); });
}

awaitable<http::Response> ProbeRoutes::answer(http::Request const& request) {
  auto const bytes = request.query_number("bytes", max_probe_bytes);
  if (!bytes) co_return bytes.error();
  co_return http::Response::text(200, std::string(bytes->value_or(0), '\0'), "application/octet-stream");
}

awaitable<std::optional<http::Problem>> ProbeRoutes::check_known(api::ProbeRequest asked, http::TimePoint deadline) {
  http::Problem const unknown(http::ProblemCode::forbidden, "only workers that the coordinator knows are measured");
  if (coordinator_.empty() || !is_valid_worker_id(asked.worker)) co_return unknown;
  http::Call call;
  call.url = coordinator_ + "/v1/workers/" + asked.worker;
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (!answer) co_return http::Problem(http::ProblemCode::unavailable, answer.error().detail);
  auto const known = http::decode<api::Worker>(answer->body, http::UnknownFields::ignore);
  if (!answer->ok() || !known || known->url != asked.url) co_return unknown;
  co_return std::nullopt;
}

awaitable<http::Response> ProbeRoutes::measure(http::Body& body) {
  auto const asked = co_await read_json<api::ProbeRequest>(body, http::UnknownFields::ignore);
  if (!asked) co_return asked.error();
  auto const url = http::parse_url(asked->message.url);
  if (!url || !url->path.empty()) co_return invalid_field("/url", "expected http://host:port without a path");
  auto const deadline = steady_clock::now() + probe_patience;
  auto const refused = co_await check_known(asked->message, deadline);
  if (refused) co_return *refused;
  api::ProbeReport report;
  report.url = asked->message.url;
  auto const unreachable = [](Error const& error) {
    return http::Problem(http::ProblemCode::worker_unreachable, error.detail);
  };
  auto const own = co_await shortest(&client_, identity_.url, deadline, 0, round_trips);
  if (!own) co_return unreachable(own.error());
  auto const there = co_await shortest(&client_, report.url, deadline, 0, round_trips);
  if (!there) co_return unreachable(there.error());
  auto const transfer = co_await transfer_over(&client_, report.url, deadline);
  if (!transfer) co_return unreachable(transfer.error());
  report.own_round_trip_s = *own;
  report.round_trip_s = *there;
  report.bytes_per_s = static_cast<double>(transfer->bytes) / std::max(transfer->seconds - *there, 1e-9);
  co_return http::Response::json(200, http::encode(report));
}

}  // namespace chorus::service
