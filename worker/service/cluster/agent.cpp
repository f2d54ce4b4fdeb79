#include "worker/service/cluster/agent.hpp"

#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "base/runtime/pause.hpp"
#include "http/api/parameters/parameters.hpp"
#include "http/json/json.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Limit for groups in one report; other groups learn of the loss from their members' renewals, or when the lease ends.
constexpr std::size_t troubles_max = 64;

std::string without_trailing_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

AgentOptions normalized(AgentOptions options) {
  options.coordinator = without_trailing_slash(std::move(options.coordinator));
  return options;
}

std::string problem_text(http::Answer const& answer) {
  return "it answered " + std::to_string(answer.status) + ": " + answer.problem().detail;
}

// The coordinator that answered is a standby, starts, or ends.
bool is_nobody_leading(http::Answer const& answer) {
  auto const code = answer.ok() ? http::ProblemCode::internal : answer.problem().code;
  return code == http::ProblemCode::not_leader || code == http::ProblemCode::unavailable;
}

}  // namespace

Agent::Agent(boost::asio::any_io_executor executor, http::Client& client, metrics::WorkerMetrics& metrics,
             std::shared_ptr<spdlog::logger> log, AgentOptions options, Fenced fenced, Calls calls)
    : executor_(executor),
      client_(client),
      metrics_(metrics),
      log_(std::move(log)),
      options_(normalized(std::move(options))),
      fenced_callback_(std::move(fenced)),
      calls_(std::move(calls)),
      backoff_(options_.backoff_min, options_.backoff_max, api::from_hex(options_.self.incarnation).value_or(1)),
      tasks_(std::move(executor)) {}

void Agent::start() { tasks_.spawn("agent", live()); }

std::optional<std::string> Agent::unready() const {
  if (lease_ends_ > steady_clock::now()) return std::nullopt;
  return "no live lease at the coordinator " + options_.coordinator + ": " + complaint_;
}

std::string Agent::own_url() const { return options_.coordinator + "/v1/workers/" + options_.self.id; }

awaitable<void> Agent::live() {
  while (!is_fenced_) {
    auto const not_before = co_await join();
    if (not_before) {
      co_await http::pause(*not_before + backoff_.next());
      continue;
    }
    backoff_.reset();
    co_await hold_lease();
  }
}

awaitable<std::optional<milliseconds>> Agent::join() {
  http::Call call;
  call.method = http::Method::post;
  call.url = options_.coordinator + "/v1/workers";
  auto self = options_.self;
  if (owned_ != nullptr) self.term = owned_->term();
  call.body = http::encode(self);
  auto const begun = steady_clock::now();
  asks_to_join_ = true;
  auto const answer = co_await client_.send(std::move(call), begun + options_.join_timeout);
  asks_to_join_ = false;
  asked_to_join_.notify_all();
  if (!answer) {
    complain("cannot join: " + answer.error().detail);
    co_return milliseconds(0);
  }
  if (!answer->ok()) {
    complain("cannot join " + options_.coordinator + ": " + problem_text(*answer));
    milliseconds const wanted = std::chrono::seconds(answer->problem().retry_after_s.value_or(0));
    co_return std::min(wanted, options_.retry_after_max);
  }
  auto const worker = http::decode<api::Worker>(answer->body, http::UnknownFields::ignore);
  if (!worker || worker->lease_ms == 0) {
    complain("cannot join " + options_.coordinator + ": its answer is not a worker with a lease");
    co_return milliseconds(0);
  }
  lease_ = milliseconds(worker->lease_ms);
  lease_ends_ = begun + lease_;
  if (owned_ != nullptr) owned_->renew(begun, lease_);
  complaint_.clear();
  log_->info("joined {} as {} (incarnation {}), lease {} ms", options_.coordinator, options_.self.id,
             options_.self.incarnation, worker->lease_ms);
  co_return std::nullopt;
}

// After a failure the pause is shorter, so that the loss of one packet does not end the lease. When the lease has ended
// pauses grow, because haste gains nothing. A coordinator that does not answer is asked as often as a healthy one: it
// is stopped or starting, and gives each known worker one lease to be heard in.
milliseconds Agent::until_next_renewal(Renewal last) {
  auto const usual = lease_ / 3;
  if (last == Renewal::renewed) {
    backoff_.reset();
    return usual;
  }
  auto const soon = backoff_.part_of(lease_ / 10);
  if (lease_ends_ > steady_clock::now()) return soon;
  auto const pause = std::max(backoff_.next(), soon);
  return last == Renewal::refused ? pause : std::min(pause, usual);
}

// Returns when the coordinator has forgotten or fenced this worker.
awaitable<void> Agent::hold_lease() {
  auto renewal = Renewal::renewed;
  while (renewal != Renewal::join_again && renewal != Renewal::fenced) {
    auto const until = steady_clock::now() + std::max(until_next_renewal(renewal), milliseconds(1));
    // After a failed renewal reports wait too, because the coordinator does not answer.
    while (steady_clock::now() < until && (troubles_.empty() || renewal != Renewal::renewed))
      co_await troubled_.wait_until(until);
    renewal = co_await renew();
  }
  end_lease();
}

awaitable<Agent::Renewal> Agent::renew() {
  http::Call call;
  call.method = http::Method::put;
  call.url = own_url() + "/lease";
  auto const troubles = std::exchange(troubles_, {});
  call.body = http::encode(
      api::LeaseRequest{options_.self.incarnation, troubles, calls_(), static_cast<std::uint32_t>(lease_.count())});
  auto const begun = steady_clock::now();
  auto const answer = co_await client_.send(std::move(call), begun + std::max(lease_ / 3, milliseconds(100)));
  // Only an answer that renews the lease shows that the coordinator has taken the reports.
  if (!answer || !answer->ok())
    for (auto const& trouble : troubles) report(trouble);
  if (!answer) {
    metrics_.lease_renewal("unreachable");
    complain("cannot renew the lease: " + answer.error().detail);
    co_return Renewal::failed;
  }
  if (answer->status == 404) {
    metrics_.lease_renewal("forgotten");
    log_->warn("{} no longer knows {}: joining again", options_.coordinator, options_.self.id);
    complaint_ = "the lease ended";
    co_return Renewal::join_again;
  }
  if (answer->status == 409) {
    metrics_.lease_renewal("fenced");
    fence(answer->problem().detail);
    co_return Renewal::fenced;
  }
  if (!answer->ok()) {
    metrics_.lease_renewal("refused");
    complain("cannot renew the lease at " + options_.coordinator + ": " + problem_text(*answer));
    co_return Renewal::refused;
  }
  metrics_.lease_renewal("renewed");
  if (!complaint_.empty()) log_->info("the lease at {} is renewed again", options_.coordinator);
  complaint_.clear();
  auto const lease = http::decode<api::LeaseAnswer>(answer->body, http::UnknownFields::ignore);
  if (lease && lease->lease_ms > 0) lease_ = milliseconds(lease->lease_ms);
  lease_ends_ = begun + lease_;
  if (owned_ != nullptr) owned_->renew(begun, lease_);
  co_return Renewal::renewed;
}

void Agent::report(api::Trouble trouble) {
  if (troubles_.size() == troubles_max) return;
  troubles_.push_back(std::move(trouble));
  troubled_.notify_all();
}

void Agent::end_lease() {
  lease_ends_ = {};
  if (owned_ != nullptr) owned_->end();
}

void Agent::fence(std::string why) {
  is_fenced_ = true;
  complaint_ = "a newer process has the name " + options_.self.id;
  fenced_callback_("a newer process has joined " + options_.coordinator + " as " + options_.self.id + " (" + why + ")");
}

void Agent::complain(std::string const& why) {
  if (stops_) return;  // the request was cancelled
  if (why != complaint_) log_->warn("{}; trying again", why);
  complaint_ = why;
}

awaitable<void> Agent::hand_over(TimePoint deadline) {
  constexpr milliseconds usual_pause{200};
  std::string told;
  while (!is_fenced_ && lease_ends_ != TimePoint() && steady_clock::now() < deadline) {
    auto const answer = co_await ask_to_hand_over(deadline);
    if (answer && !is_nobody_leading(*answer)) co_return tell_of_hand_over(*answer);
    auto const why = answer ? problem_text(*answer) : answer.error().detail;
    auto const kind = answer ? why : answer.error().code.message();  // the detail has the time that is left
    if (kind != std::exchange(told, kind))
      log_->warn("{} could not be asked to hand shards over: {}; trying again until the drain timeout",
                 options_.coordinator, why);
    auto const wanted = std::chrono::seconds(answer ? answer->problem().retry_after_s.value_or(0) : 0);
    co_await http::pause_until(std::min(deadline, steady_clock::now() + std::max<milliseconds>(wanted, usual_pause)));
  }
}

awaitable<Result<http::Answer>> Agent::ask_to_hand_over(TimePoint deadline) {
  // Bounded by the time that a coordinator waits.
  constexpr milliseconds longest = std::chrono::minutes(10);
  auto const left = std::min(longest, std::chrono::ceil<milliseconds>(deadline - steady_clock::now()));
  http::Call call;
  call.method = http::Method::post;
  call.url =
      own_url() + "/handover?incarnation=" + options_.self.incarnation + "&wait=" + std::to_string(left.count()) + "ms";
  co_return co_await client_.send(std::move(call), steady_clock::now() + left + milliseconds(500));
}

void Agent::tell_of_hand_over(http::Answer const& answer) {
  auto const said = answer.ok() ? http::decode<api::HandOverAnswer>(answer.body, http::UnknownFields::ignore)
                                : http::Checked<api::HandOverAnswer>(answer.problem());
  if (!said)
    log_->warn("shards were not handed over: {}", said.error().detail);
  else if (said->shards_left > 0)
    log_->warn("{} shards of parameters were not taken by anybody", said->shards_left);
}

awaitable<Result<http::Answer>> Agent::give_back(std::string_view what, TimePoint deadline) {
  http::Call call;
  call.method = http::Method::delete_;
  call.url = own_url() + std::string(what) + "?incarnation=" + options_.self.incarnation;
  co_return co_await client_.send(std::move(call), deadline);
}

awaitable<void> Agent::leave(TimePoint deadline) {
  if (is_fenced_ || lease_ends_ == TimePoint()) co_return;
  end_lease();
  complaint_ = "the worker has left";
  auto answer = co_await give_back("/lease", deadline);
  // A coordinator of an older release cannot take leases back.
  if (answer && answer->status == 405) answer = co_await give_back("", deadline);
  if (!answer)
    log_->warn("could not tell {} of the leave: {}", options_.coordinator, answer.error().detail);
  else if (!answer->ok())
    log_->warn("{} did not accept the leave: {}", options_.coordinator, answer->problem().detail);
}

// A coordinator that has taken the worker in, but has not said so, would keep it until its lease ends.
awaitable<void> Agent::stop(TimePoint deadline) {
  stops_ = true;
  while (asks_to_join_ && steady_clock::now() < deadline) co_await asked_to_join_.wait_until(deadline);
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace chorus::service
