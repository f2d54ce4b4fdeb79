#include "server/coordinator/collectives.hpp"

#include "server/coordinator/identifier.hpp"
#include "server/coordinator/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;

}  // namespace

Collectives::Collectives(Tools tools, ExecutionPatience patience, RecordLimits limits)
    : tools_(std::move(tools)),
      patience_(patience),
      records_(tools_.execution.random, limits),
      one_ended_(tools_.execution.executor),
      tasks_(tools_.execution.executor) {}

Collectives::~Collectives() = default;

http::Checked<Collectives::Ready> Collectives::check(api::CollectiveRequest const& request) const {
  if (draining_) {
    Problem problem(ProblemCode::unavailable, "the coordinator is stopping");
    problem.retry_after_s = 5;
    return problem;
  }
  auto order = check_order(request);
  if (order.has_error()) return order.error();
  auto group = tools_.execution.groups.find(request.group);
  if (group.has_error()) return group.error();
  if (auto problem = check_order_for(request, order.value(), group.value())) return std::move(*problem);
  if (auto problem = tools_.execution.groups.unusable(group.value())) return std::move(*problem);
  return Ready{std::move(order.value()), std::move(group.value())};
}

asio::awaitable<http::Checked<Collectives::Launched>> Collectives::launch(Records::Name name,
                                                                          api::CollectiveRequest request) {
  // A repetition is answered even if the group has gone since.
  auto checked = check(request);
  if (checked.has_error() && !records_.knows(name)) co_return checked.error();
  auto const begun = records_.begin(name, request, rfc3339(wall_seconds()));
  if (begun.has_error()) co_return begun.error();
  auto const record = begun.value().record;
  if (begun.value().created) {
    auto execution = std::make_shared<Execution>(tools_.execution, patience_, record, std::move(checked.value().order),
                                                 std::move(checked.value().group), Execution::Mode::launch);
    running_.emplace(record->view().id, execution);
    tasks_.spawn("collective " + record->view().id, execute(execution, Execution::Mode::launch));
  }
  if (auto const execution = running(*record))
    while (record->view().state == "pending" && !execution->in_line())
      co_await execution->changed().wait_until(TimePoint::max());
  co_return Launched{record, begun.value().created};
}

asio::awaitable<http::Checked<std::shared_ptr<Record>>> Collectives::validate(api::CollectiveRequest request) {
  auto checked = check(request);
  if (checked.has_error()) co_return checked.error();
  auto const record = std::make_shared<Record>("", 0, std::move(request), rfc3339(wall_seconds()));
  auto const execution =
      std::make_shared<Execution>(tools_.execution, patience_, record, std::move(checked.value().order),
                                  std::move(checked.value().group), Execution::Mode::validate_only);
  tasks_.spawn("validation", execute(execution, Execution::Mode::validate_only));
  while (!execution->done()) co_await execution->changed().wait_until(TimePoint::max());
  co_return record;
}

asio::awaitable<void> Collectives::execute(std::shared_ptr<Execution> execution, Execution::Mode mode) {
  co_await execution->run();
  if (mode == Execution::Mode::launch) finished(*execution);
  for (auto rank : execution->broken_ranks()) {
    auto const& member = execution->group().members[rank];
    tools_.suspect(member.worker, member.incarnation);
  }
}

void Collectives::finished(Execution const& execution) {
  auto const& view = execution.record().view();
  auto const algorithm = view.algorithm.empty() ? "none" : view.algorithm;
  tools_.metrics.collective_finished(view.request.op, algorithm, view.state, view.seconds, view.bytes,
                                     view.arrival_skew_seconds);
  auto const level = view.state == "succeeded" ? spdlog::level::info : spdlog::level::warn;
  if (view.state == "failed") tools_.metrics.collective_failed(view.request.op, http::kind(view.error->code).name);
  tools_.log.log(
      level,
      "collective {} run={} group={} epoch={} op={} tensor={} bytes={} algorithm={} seconds={:.6f} result={}{}{}",
      view.id, view.run, view.request.group, view.epoch, view.request.op, view.request.tensor, view.bytes, algorithm,
      view.seconds, view.state, view.error ? ": " : "", view.error ? on_one_line(view.error->detail) : "");
  records_.keep_for_a_while(execution.record());
  running_.erase(view.id);
  one_ended_.notify_all();
}

std::shared_ptr<Execution> Collectives::running(Record const& record) const {
  auto const found = running_.find(record.view().id);
  return found == running_.end() ? nullptr : found->second;
}

asio::awaitable<void> Collectives::wait(std::shared_ptr<Record> record, TimePoint until) {
  auto const execution = running(*record);
  if (!execution) co_return;
  while (!execution->done() && std::chrono::steady_clock::now() < until)
    co_await execution->changed().wait_until(until);
}

asio::awaitable<void> Collectives::cancel(std::shared_ptr<Record> record) {
  auto const execution = running(*record);
  if (!execution) co_return;
  execution->cancel(Problem(ProblemCode::cancelled, "cancelled by DELETE /v1/collectives/" + record->view().id));
  while (!execution->done()) co_await execution->changed().wait_until(TimePoint::max());
}

void Collectives::worker_lost(std::string const& worker, std::string const& incarnation, std::string const& why) {
  for (auto const& [id, execution] : running_) execution->worker_lost(worker, incarnation, why);
}

asio::awaitable<void> Collectives::stop(TimePoint until) {
  drain();
  while (!running_.empty() && std::chrono::steady_clock::now() < until) co_await one_ended_.wait_until(until);
  for (auto const& [id, execution] : running_)
    execution->cancel(Problem(ProblemCode::cancelled, "the coordinator is stopping"));
  co_await tasks_.join();
}

}  // namespace chorus::coordinator
