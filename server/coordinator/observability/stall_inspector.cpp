#include "server/coordinator/observability/stall_inspector.hpp"

#include <utility>
#include <vector>

#include "server/coordinator/text/log_fields.hpp"
#include "server/coordinator/text/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr std::size_t at_once_max = 64;

double seconds_since(TimePoint then) { return std::chrono::duration<double>(Clock::now() - then).count(); }

}  // namespace

struct StallInspector::Inspection {
  explicit Inspection(asio::any_io_executor executor) : answered(std::move(executor)) {}
  std::vector<RankLook> looks;
  std::size_t pending = 0;
  http::Condition answered;
};

asio::awaitable<void> StallInspector::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

asio::awaitable<void> StallInspector::watch() {
  for (;;) {
    co_await ticks_.wait_until(Clock::now() + patience_.every);
    auto const running = tools_.collectives.under_way();
    std::vector<std::string> over;
    for (auto const& [id, stalled] : stalled_)
      if (auto const found = running.find(id);
          found == running.end() || found->second->record().view().run != stalled.run)
        over.push_back(id);
    for (auto const& id : over) forget(id);
    for (auto const& [id, execution] : running) {
      auto const standing = execution->standing();
      bool const is_worth_it = standing && (Clock::now() - standing->since >= patience_.stall || stalled_.contains(id));
      if (!is_worth_it || looked_at_.contains(id) || looked_at_.size() >= at_once_max) continue;
      looked_at_[id] = true;
      tasks_.spawn("inspection of " + id, inspect(execution));
    }
  }
}

asio::awaitable<void> StallInspector::inspect(std::shared_ptr<Execution> execution) {
  auto const id = execution->record().view().id;
  auto const run = execution->record().view().run;
  auto const standing = *execution->standing();
  auto const inspection = std::make_shared<Inspection>(tools_.executor);
  for (auto const& member : execution->group().members)
    inspection->looks.push_back({member.rank, member.worker, RankLook::Kind::ended, {}});
  for (auto const rank : standing.awaited) {
    auto& look = inspection->looks[rank];
    look.kind = RankLook::Kind::silent;
    if (!standing.runs) continue;
    ++inspection->pending;
    tasks_.spawn("question to " + look.worker, ask(inspection, rank, execution->group().members[rank].url, run));
  }
  while (inspection->pending != 0) co_await inspection->answered.wait_until(TimePoint::max());
  looked_at_.erase(id);
  auto const record = tools_.collectives.records().find(id);
  if (execution->done() || record.has_error() || record.value()->view().run != run) co_return;
  auto const now = execution->standing();
  if (now && now->since == standing.since) conclude(*record.value(), inspection->looks, seconds_since(now->since));
}

asio::awaitable<void> StallInspector::ask(std::shared_ptr<Inspection> inspection, std::size_t index, std::string url,
                                          std::uint64_t run) {
  auto said = co_await tools_.workers.look_at_progress(std::move(url), run, Clock::now() + patience_.answer);
  auto& look = inspection->looks[index];
  if (said.has_value() && said->has_error()) {
    look.kind = said->error().code == http::ProblemCode::unknown_run ? RankLook::Kind::not_begun : RankLook::Kind::busy;
  } else if (said.has_value()) {
    look.progress = std::move(said->value());
    look.kind = look.progress.state == "running" ? RankLook::Kind::running
                : look.progress.state == "busy"  ? RankLook::Kind::busy
                                                 : RankLook::Kind::ended;
  }
  --inspection->pending;
  inspection->answered.notify_all();
}

void StallInspector::conclude(Record& record, std::vector<RankLook> const& looks, double standing_s) {
  auto const& view = record.view();
  auto const for_s = still_seconds(looks, standing_s);
  auto const threshold_s = std::chrono::duration<double>(patience_.stall).count();
  if (for_s < threshold_s) {
    if (stalled_.contains(view.id)) moves(record);
    return;
  }
  auto stall = to_stall(looks, for_s);
  stall.since = rfc3339(wall_seconds() - for_s);
  auto const text = stall.text;
  record.stall(std::move(stall));
  if (!stalled_.insert_or_assign(view.id, Stalled{view.run, view.request.op}).second) return;
  logging::warn(tools_.log, "collective.stalled", "collective " + view.id + ": " + text, fields_of(view));
  tools_.collective_history.stalled(record);
  count();
}

void StallInspector::moves(Record& record) {
  record.stall(std::nullopt);
  logging::info(tools_.log, "collective.moving", "collective " + record.view().id + " moves again",
                fields_of(record.view()));
  tools_.collective_history.moving(record);
  forget(record.view().id);
}

void StallInspector::forget(std::string const& id) {
  stalled_.erase(id);
  count();
}

void StallInspector::count() {
  for (auto& [op, count] : counts_) count = 0;
  for (auto const& [id, stalled] : stalled_) ++counts_[stalled.op];
  for (auto const& [op, count] : counts_) tools_.metrics.collectives_stalled(op, count);
}

}  // namespace chorus::coordinator
