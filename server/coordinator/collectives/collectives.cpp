#include "server/coordinator/collectives/collectives.hpp"

#include <algorithm>

#include "server/coordinator/text/identifier.hpp"
#include "server/coordinator/text/log_fields.hpp"
#include "server/coordinator/text/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;

// Timeout until the collective is planned. Without a timeout in the request it waits for others on its tensor as long
// as those may take.
TimePoint::duration timeout_of(api::CollectiveRequest const& request) {
  if (request.timeout_ms) return std::chrono::milliseconds(*request.timeout_ms);
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(Pace::most_s));
}

}  // namespace

Collectives::Collectives(Tools tools, ExecutionPatience patience, RecordLimits limits)
    : tools_(std::move(tools)),
      patience_(patience),
      records_(tools_.execution.random, limits),
      one_ended_(tools_.execution.executor),
      tasks_(tools_.execution.executor) {}

Collectives::~Collectives() = default;

void Collectives::restore(JournalState const& state) {
  auto kept = state.collectives;
  std::ranges::sort(kept, {}, &JournalCollective::sequence);
  auto const number = [&state](Counter counter) {
    auto const found = state.counters.find(counter);
    return found == state.counters.end() ? 0 : found->second;
  };
  records_.restore(kept, number(Counter::run), number(Counter::collective));
  // A decision about an earlier attempt, which was not durable in time, is none about the present one.
  auto const is_decided = [&state](api::Collective const& record) {
    auto const found = state.decisions.find(record.id);
    return found != state.decisions.end() && found->second.run == record.run;
  };
  for (auto& one : kept) {
    if (one.stage == "ended") continue;
    bool const decided = is_decided(one.record);
    unfinished_.emplace_back(std::move(one), decided);
  }
}

// Continues in the order of the requests, but first the collectives that workers may know.
void Collectives::recover() {
  for (auto& [kept, decided] : unfinished_) {
    tools_.execution.collective_history.resumed(kept);
    if (kept.stage == "begun") continue;
    auto const record = records_.find(kept.record.id).value();
    record->run();
    auto const reconciliation = std::make_shared<Reconciliation>(tools_.execution, patience_.reconciliation, record,
                                                                 kept.group.value_or(api::Group()), decided);
    logging::info(tools_.log, "collective.reconciled",
                  "collective " + kept.record.id + " was under way, " + (decided ? "to be committed" : "undecided") +
                      ": asking its workers",
                  fields_of(kept.record));
    reconciling_.emplace(kept.record.id, reconciliation);
    tasks_.spawn("reconciliation " + kept.record.id, reconcile(reconciliation));
  }
  for (auto const& [kept, decided] : unfinished_)
    if (kept.stage == "begun") resume(kept);
  unfinished_.clear();
}

void Collectives::resume(JournalCollective const& kept) {
  auto const record = records_.find(kept.record.id).value();
  auto order = check_order(kept.record.request);
  if (order.has_error()) {  // written by a later release
    record->fail(order.error(), std::chrono::steady_clock::now());
    return finished(*record);
  }
  logging::info(tools_.log, "collective.resumed", "collective " + kept.record.id + " had not been launched: it goes on",
                fields_of(kept.record));
  start(record, {std::move(order.value()), std::make_shared<api::Group const>(kept.group.value_or(api::Group()))},
        Execution::Mode::launch_asking);
}

http::Checked<Collectives::Ready> Collectives::check(api::CollectiveRequest const& request) const {
  if (draining_) {
    Problem problem(ProblemCode::unavailable, "the coordinator is stopping");
    problem.retry_after_s = 5;
    return problem;
  }
  if (auto problem = tools_.journal.failure()) return std::move(*problem);
  auto order = check_order(request);
  if (order.has_error()) return order.error();
  auto group = tools_.execution.groups.find(request.group);
  if (group.has_error()) return group.error();
  if (auto problem = check_order_for(request, order.value(), *group.value())) return std::move(*problem);
  if (auto problem = tools_.execution.groups.unusable(*group.value())) return std::move(*problem);
  return Ready{std::move(order.value()), std::move(group.value())};
}

asio::awaitable<http::Checked<Collectives::Launched>> Collectives::launch(Records::Name name,
                                                                          api::CollectiveRequest request,
                                                                          std::optional<http::TraceContext> trace,
                                                                          Execution::Mode mode) {
  // A repetition is answered even if the group no longer exists.
  auto checked = check(request);
  if (checked.has_error() && !records_.knows(name)) co_return checked.error();
  auto const begun = records_.begin(name, request, rfc3339(wall_seconds()));
  if (begun.has_error()) co_return begun.error();
  auto const record = begun.value().record;
  if (begun.value().created) {
    if (trace) record->belongs_to(http::to_traceparent(*trace));
    tools_.execution.collective_history.begun(records_, *record, *checked.value().group);
    start(record, std::move(checked.value()), mode);
  }
  for (auto execution = running(*record);
       execution && record->view().state == "pending" && record->view().attempts.empty() && !execution->in_line();
       execution = running(*record))
    co_await execution->changed().wait_until(TimePoint::max());
  // A collective that waits in the queue has not yet waited for the disk.
  if (!record->ended()) {
    auto const execution = running(*record);
    auto const deadline = execution ? execution->deadline() : TimePoint::max();
    if (auto problem = co_await tools_.journal.flush(deadline)) co_return std::move(*problem);
  }
  co_return Launched{record, begun.value().created};
}

void Collectives::start(std::shared_ptr<Record> record, Ready ready, Execution::Mode mode) {
  auto const id = record->view().id;
  auto const deadline = std::chrono::steady_clock::now() + timeout_of(record->view().request);
  auto execution = std::make_shared<Execution>(tools_.execution, patience_, std::move(record), std::move(ready.order),
                                               std::move(ready.group), mode, deadline);
  running_.emplace(id, execution);
  tasks_.spawn("collective " + id, execute(std::move(execution), mode));
}

asio::awaitable<http::Checked<std::shared_ptr<Record>>> Collectives::validate(api::CollectiveRequest request) {
  auto checked = check(request);
  if (checked.has_error()) co_return checked.error();
  auto const deadline = std::chrono::steady_clock::now() + timeout_of(request);
  auto const record = std::make_shared<Record>("", 0, std::move(request), rfc3339(wall_seconds()));
  auto const execution =
      std::make_shared<Execution>(tools_.execution, patience_, record, std::move(checked.value().order),
                                  std::move(checked.value().group), Execution::Mode::validate_only, deadline);
  tasks_.spawn("validation", execute(execution, Execution::Mode::validate_only));
  while (!execution->done()) co_await execution->changed().wait_until(TimePoint::max());
  co_return record;
}

asio::awaitable<void> Collectives::execute(std::shared_ptr<Execution> execution, Execution::Mode mode) {
  while (execution) {
    auto problem = co_await execution->run();
    if (execution->mistaken()) {
      execution = ask_again(execution);
      continue;
    }
    bool const launches = mode != Execution::Mode::validate_only;
    if (launches) count(*execution);
    for (auto rank : execution->broken_ranks()) {
      auto const& member = execution->group().members[rank];
      tools_.suspect(member.worker, member.incarnation);
    }
    std::shared_ptr<Execution> next;
    if (problem) next = co_await begin_again(execution, std::move(*problem));
    if (!next && launches) {
      running_.erase(execution->record().view().id);
      finished(execution->record());
    }
    execution = std::move(next);
  }
}

std::shared_ptr<Execution> Collectives::ask_again(std::shared_ptr<Execution> mistaken) {
  auto const record = records_.find(mistaken->record().view().id).value();
  logging::write(tools_.log, spdlog::level::debug, "collective.asked_again",
                 "collective " + record->view().id + " went by what was known of tensor '" +
                     record->view().request.tensor + "', which has changed: its workers are asked",
                 fields_of(record->view()));
  record->ask_again(records_.draw_run());
  tools_.execution.collective_history.asked_again(records_, *record, mistaken->group());
  auto next = std::make_shared<Execution>(tools_.execution, patience_, record, mistaken->order(), mistaken->snapshot(),
                                          Execution::Mode::launch_asking, mistaken->deadline());
  next->take_place_of(*mistaken);
  running_.insert_or_assign(record->view().id, next);
  mistaken->superseded();
  return next;
}

http::Checked<Collectives::Ready> Collectives::next_epoch(Execution const& failed) const {
  auto ready = check(failed.record().view().request);
  if (ready.has_value() && ready.value().group->epoch == failed.group().epoch)
    return Problem(ProblemCode::group_broken, "the group has not left the epoch that failed");
  return ready;
}

asio::awaitable<std::shared_ptr<Execution>> Collectives::begin_again(std::shared_ptr<Execution> failed,
                                                                     Problem problem) {
  auto const until = std::min(failed->deadline(), std::chrono::steady_clock::now() + patience_.next_epoch);
  auto ready = next_epoch(*failed);
  while (ready.has_error() && !draining_ && !failed->cancelled() && std::chrono::steady_clock::now() < until) {
    co_await tools_.execution.locks_changed.wait_until(until);
    ready = next_epoch(*failed);
  }
  if (ready.has_error() || failed->cancelled()) {
    if (failed->cancelled()) problem = *failed->cancelled();
    failed->end(std::move(problem));
    co_return nullptr;
  }
  auto const record = records_.find(failed->record().view().id).value();
  logging::warn(tools_.log, "collective.begun_again",
                "collective " + record->view().id + " begins again in epoch " +
                    std::to_string(ready.value().group->epoch) + ": " + on_one_line(problem.detail),
                fields_of(record->view()));
  record->begin_again(records_.draw_run(), std::move(problem), failed->group().epoch);
  tools_.execution.collective_history.begun_again(records_, *record, *ready.value().group);
  auto next = std::make_shared<Execution>(tools_.execution, patience_, record, std::move(ready.value().order),
                                          std::move(ready.value().group), Execution::Mode::launch, failed->deadline());
  running_.insert_or_assign(record->view().id, next);
  failed->superseded();
  co_return next;
}

asio::awaitable<void> Collectives::reconcile(std::shared_ptr<Reconciliation> reconciliation) {
  co_await reconciliation->run();
  reconciling_.erase(reconciliation->record().view().id);
  if (reconciliation->record().ended()) finished(reconciliation->record());
  for (auto rank : reconciliation->broken_ranks()) {
    auto const& member = reconciliation->group().members[rank];
    tools_.suspect(member.worker, member.incarnation);
  }
}

void Collectives::count(Execution const& execution) {
  auto const& view = execution.record().view();
  if (!view.algorithm.empty())
    tools_.metrics.collective_planned(view.request.op, view.algorithm,
                                      view.request.algorithm == "auto" ? "model" : "request");
  if (auto const waited = execution.waited_seconds()) tools_.metrics.collective_launched(view.request.op, *waited);
}

Collectives::Counts Collectives::counts() const {
  Counts counts;
  for (auto const& [id, execution] : running_) {
    auto const& view = execution->record().view();
    ++(view.state == "running" ? counts.active : counts.queued)[view.request.op];
  }
  for (auto const& [id, reconciliation] : reconciling_) ++counts.active[reconciliation->record().view().request.op];
  return counts;
}

void Collectives::finished(Record const& record) {
  auto const& view = record.view();
  auto const algorithm = view.algorithm.empty() ? "none" : view.algorithm;
  auto slowest_s = 0.0;
  for (auto const& rank : view.ranks)
    if (rank.report) slowest_s = std::max(slowest_s, rank.report->seconds);
  tools_.metrics.collective_finished({view.request.op, algorithm, view.state, view.seconds, view.bytes,
                                      view.arrival_skew_seconds, view.predicted_seconds, slowest_s});
  for (auto const& rank : view.ranks)
    if (rank.late_seconds > 0) tools_.metrics.straggled(rank.worker);
  auto const level = view.state == "succeeded" ? spdlog::level::info : spdlog::level::warn;
  if (view.state == "failed") tools_.metrics.collective_failed(view.request.op, http::kind(view.error->code).name);
  auto fields = fields_of(view);
  fields.insert(fields.end(), {{"op", view.request.op},
                               {"tensor", view.request.tensor},
                               {"bytes", view.bytes},
                               {"algorithm", algorithm},
                               {"seconds", view.seconds},
                               {"result", view.state}});
  if (view.error) fields.emplace_back("code", http::kind(view.error->code).name);
  logging::write(tools_.log, level, "collective.ended",
                 "collective " + view.id + " " + view.state +
                     (view.error ? ": " + on_one_line(view.error->detail) : std::string()),
                 fields);
  tools_.execution.collective_history.ended(records_, record);
  if (auto const forgotten = records_.keep_for_a_while(record))
    tools_.execution.collective_history.forgotten(*forgotten);
  one_ended_.notify_all();
}

std::shared_ptr<Execution> Collectives::running(Record const& record) const {
  auto const found = running_.find(record.view().id);
  return found == running_.end() ? nullptr : found->second;
}

asio::awaitable<void> Collectives::wait(std::shared_ptr<Record> record, TimePoint until) {
  if (auto const found = reconciling_.find(record->view().id); found != reconciling_.end()) {
    auto const reconciliation = found->second;
    while (!reconciliation->done() && std::chrono::steady_clock::now() < until)
      co_await reconciliation->changed().wait_until(until);
    co_return;
  }
  for (auto execution = running(*record); execution && !record->ended() && std::chrono::steady_clock::now() < until;
       execution = running(*record))
    co_await execution->changed().wait_until(until);
}

asio::awaitable<void> Collectives::cancel(std::shared_ptr<Record> record) {
  if (auto const execution = running(*record))
    execution->cancel(Problem(ProblemCode::cancelled, "cancelled by DELETE /v1/collectives/" + record->view().id));
  co_await wait(std::move(record), TimePoint::max());
}

void Collectives::worker_lost(std::string const& worker, std::string const& incarnation, std::string const& why) {
  for (auto const& [id, execution] : running_) execution->worker_lost(worker, incarnation, why);
}

asio::awaitable<void> Collectives::finish(TimePoint until) {
  drain();
  while (!running_.empty() && std::chrono::steady_clock::now() < until) co_await one_ended_.wait_until(until);
}

asio::awaitable<void> Collectives::stop(TimePoint until) {
  co_await finish(until);
  for (auto const& [id, execution] : running_)
    execution->cancel(Problem(ProblemCode::cancelled, "the coordinator is stopping"));
  for (auto const& [id, reconciliation] : reconciling_) reconciliation->give_up();
  co_await tasks_.join();
}

}  // namespace chorus::coordinator
