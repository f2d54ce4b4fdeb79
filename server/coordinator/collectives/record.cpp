#include "server/coordinator/collectives/record.hpp"

#include <algorithm>
#include <map>

#include "collectives/core/assert.hpp"
#include "http/message/trace_context.hpp"
#include "server/coordinator/collectives/run_ranks.hpp"
#include "server/planning/explain.hpp"

namespace chorus::coordinator {
namespace {

// Limit for a launch; POST /v1/plans shows all alternatives.
constexpr std::size_t considered_max = 10;

double seconds_between(TimePoint from, TimePoint to) { return std::chrono::duration<double>(to - from).count(); }

}  // namespace

Record::Record(std::string id, std::uint64_t run, api::CollectiveRequest request, std::string created_at) {
  view_.id = std::move(id);
  view_.state = "pending";
  view_.run = run;
  view_.request = std::move(request);
  view_.created_at = std::move(created_at);
}

void Record::plan(api::Group const& group, Admitted const& admitted, model::Choice const& choice, TimePoint now) {
  CHORUS_ASSERT(view_.state == "pending", "a collective is planned once");
  view_.state = "planned";
  view_.epoch = group.epoch;
  view_.dtype = name(admitted.dtype);
  view_.shape = admitted.shape;
  view_.bytes = admitted.bytes;
  view_.algorithm = choice.spec.algorithm;
  view_.root = choice.spec.root;
  view_.arity = choice.spec.arity;
  view_.algorithm_shape = choice.spec.shape;
  // In one memory all algorithms move the same bytes; centralized needs the fewest passes over the sum. If GPUs of a
  // worker may add in any order, the choice is left to the worker.
  if (admitted.contributions > 0) {
    bool const is_open = std::ranges::any_of(admitted.devices, [this](auto const& devices) {
      return devices && may_add_in_any_order(view_.request, *devices);
    });
    bool const is_chosen = view_.request.local_algorithm == "auto" && !is_open;
    view_.local_algorithm = is_chosen ? "centralized" : view_.request.local_algorithm;
  }
  has_one_result_ =
      choice.spec.op == Op::all_reduce || choice.spec.op == Op::broadcast || choice.spec.op == Op::all_gather;
  view_.reason = choice.reason;
  view_.considered = planning::show_cheapest(choice, considered_max);
  view_.predicted_seconds = choice.cost.seconds;
  auto const sent = view_.wire_bytes.value_or(admitted.bytes);
  if (view_.wire_bytes) view_.compression_ratio = planning::compression_ratio(admitted.bytes, sent);
  view_.lower_bound = planning::show_lower_bound(choice.spec.op, choice.spec.ranks, sent);
  for (auto const& member : group.members)
    view_.ranks.push_back({member.rank, member.worker, admitted.tensors[member.rank], admitted.devices[member.rank],
                           "pending", 0, std::nullopt});
  if (!admitted_) admitted_ = now;
}

void Record::sends(std::optional<WireFormat> format, std::optional<std::uint64_t> wire_bytes,
                   std::optional<std::vector<api::ConsideredFormat>> considered) {
  view_.wire_format = format ? std::optional(std::string(name(*format))) : std::nullopt;
  view_.wire_bytes = wire_bytes;
  view_.compression_ratio.reset();
  view_.considered_formats = std::move(considered);
}

void Record::given_time(std::chrono::milliseconds timeout) {
  view_.timeout_ms = static_cast<std::uint64_t>(timeout.count());
}

void Record::run() {
  CHORUS_ASSERT(view_.state == "planned", "only what is planned runs");
  view_.state = "running";
  for (auto& rank : view_.ranks) rank.state = "running";
}

// The worker's clock has another origin, so the start is computed as arrival of the report minus duration of the run.
void Record::rank_succeeded(std::uint32_t rank, api::RunReport report, TimePoint now) {
  auto& place = view_.ranks.at(rank);
  CHORUS_ASSERT(view_.state == "running" && place.state == "running", "a rank ends once");
  auto const start =
      now - std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(report.seconds));
  first_start_ = std::min(first_start_.value_or(start), start);
  last_start_ = std::max(last_start_.value_or(start), start);
  view_.arrival_skew_seconds = seconds_between(*first_start_, *last_start_);
  place.state = "succeeded";
  place.report = std::move(report);
}

void Record::rank_failed(std::uint32_t rank, std::optional<api::RunReport> report) {
  auto& place = view_.ranks.at(rank);
  CHORUS_ASSERT(view_.state == "running" && place.state == "running", "a rank ends once");
  place.state = "failed";
  place.report = std::move(report);
}

void Record::succeed(std::vector<std::uint64_t> const& versions, TimePoint now) {
  CHORUS_ASSERT(versions.size() == view_.ranks.size(), "every rank has committed");
  for (auto& rank : view_.ranks) {
    CHORUS_ASSERT(rank.state == "succeeded" && rank.report, "only a collective that succeeded everywhere is committed");
    rank.report->version = versions[rank.rank];
  }
  view_.stalled.reset();
  end("succeeded", std::nullopt, now);
}

void Record::came_late(std::vector<double> const& lateness_s) {
  for (auto& rank : view_.ranks) rank.late_seconds = lateness_s.at(rank.rank);
}

void Record::begin_again(std::uint64_t run, http::Problem why, std::uint32_t epoch) {
  CHORUS_ASSERT(!ended(), "what has ended is not begun again");
  view_.attempts.push_back({view_.run, epoch, std::move(why)});
  view_.state = "pending";
  view_.run = run;
  view_.ranks.clear();
  view_.stalled.reset();
  view_.arrival_skew_seconds = 0;
  first_start_.reset();
  last_start_.reset();
}

void Record::ask_again(std::uint64_t run) {
  CHORUS_ASSERT(!ended(), "what has ended is not begun again");
  api::Collective fresh;
  fresh.id = std::move(view_.id);
  fresh.state = "pending";
  fresh.run = run;
  fresh.request = std::move(view_.request);
  fresh.created_at = std::move(view_.created_at);
  fresh.traceparent = std::move(view_.traceparent);
  fresh.attempts = std::move(view_.attempts);
  view_ = std::move(fresh);
  if (view_.attempts.empty()) admitted_.reset();
  first_start_.reset();
  last_start_.reset();
}

void Record::fail(http::Problem problem, TimePoint now) {
  refused_ = view_.state == "pending" || view_.state == "planned";
  end("failed", std::move(problem), now);
}

void Record::cancel(http::Problem problem, TimePoint now) { end("cancelled", std::move(problem), now); }

void Record::end(char const* state, std::optional<http::Problem> problem, TimePoint now) {
  CHORUS_ASSERT(!ended(), "a collective ends once");
  view_.state = state;
  view_.error = std::move(problem);
  if (view_.error) view_.error->instance = "/v1/collectives/" + view_.id;
  if (auto const trace = http::parse_traceparent(view_.traceparent.value_or("")); trace && view_.error)
    view_.error->trace_id = trace->trace_id;
  if (admitted_) view_.seconds = seconds_between(*admitted_, now);
  for (auto& rank : view_.ranks)
    if (rank.state == "running" || rank.state == "pending") rank.state = "failed";
}

bool Record::ended() const {
  return view_.state == "succeeded" || view_.state == "failed" || view_.state == "cancelled";
}

bool Record::may_be_repeated() const { return refused_ && http::kind(view_.error->code).retryable; }

std::optional<http::Problem> Record::check_digests() const {
  if (!has_one_result_) return std::nullopt;
  std::map<std::string, std::vector<std::uint32_t>> ranks_by_digest;
  for (auto const& rank : view_.ranks)
    if (rank.report && rank.report->output_digest) ranks_by_digest[*rank.report->output_digest].push_back(rank.rank);
  if (ranks_by_digest.size() <= 1) return std::nullopt;
  auto const most = std::ranges::max_element(ranks_by_digest, [](auto const& a, auto const& b) {
    return std::pair(a.second.size(), b.second.front()) < std::pair(b.second.size(), a.second.front());
  });
  http::Problem problem(http::ProblemCode::digest_mismatch, "the results of the ranks differ; nothing was committed");
  for (auto const& [digest, ranks] : ranks_by_digest) {
    if (digest == most->first) continue;
    for (auto rank : ranks) {
      problem.ranks.push_back(rank);
      problem.errors.push_back({"/ranks/" + std::to_string(rank) + "/report/output_digest",
                                "rank " + std::to_string(rank) + " ('" + view_.ranks[rank].worker + "') has " + digest +
                                    ", " + std::to_string(most->second.size()) + " of " +
                                    std::to_string(view_.ranks.size()) + " ranks have " + most->first});
    }
  }
  std::ranges::sort(problem.ranks);
  problem.detail += "; " + problem.errors.front().detail;
  return problem;
}

}  // namespace chorus::coordinator
