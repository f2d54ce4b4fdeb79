#include "server/coordinator/collectives/collective_history.hpp"

#include "server/coordinator/journal/journal_state.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;

// The rest is enough to find the members again, and to run.
api::Group without_roles(api::Group group) {
  for (auto& member : group.members) member.roles.clear();
  group.selection.clear();
  return group;
}

}  // namespace

void CollectiveHistory::tell(char const* what, Record const& record, http::Problem const* why) {
  auto const& view = record.view();
  api::Event event;
  event.type = std::string("collective.") + what;
  event.collective = view.id;
  event.group = view.request.group;
  if (view.epoch != 0) event.epoch = view.epoch;
  event.run = view.run;
  if (view.error) why = &*view.error;
  if (why != nullptr) {
    event.code = http::kind(why->code).name;
    event.detail = why->detail;
  }
  if (!event.detail && view.stalled && view.state != "succeeded") event.detail = view.stalled->text;
  events_.publish(std::move(event));
}

void CollectiveHistory::keep_begun(Records const& records, Record const& record, api::Group const& group) {
  auto kept = records.kept(record);
  kept.stage = "begun";
  if (journal_.on_disk()) {
    kept.group = without_roles(group);
    journal_.write(row_of(Counter::run, records.last_run()));
    journal_.write(row_of(Counter::collective, records.last_sequence()));
    journal_.write(row_of(kept));
  }
  open_.insert_or_assign(record.view().id, std::move(kept));
}

void CollectiveHistory::begun(Records const& records, Record const& record, api::Group const& group) {
  keep_begun(records, record, group);
  tell("pending", record);
}

void CollectiveHistory::begun_again(Records const& records, Record const& record, api::Group const& group) {
  keep_begun(records, record, group);
  auto const& why = record.view().attempts.back().error;
  tell("begun_again", record, &why);
}

void CollectiveHistory::asked_again(Records const& records, Record const& record, api::Group const& group) {
  keep_begun(records, record, group);
}

void CollectiveHistory::stalled(Record const& record) { tell("stalled", record); }

void CollectiveHistory::moving(Record const& record) { tell("moving", record); }

void CollectiveHistory::planned(Record const& record) { tell("planned", record); }

asio::awaitable<std::optional<http::Problem>> CollectiveHistory::launching(Record const& record, TimePoint deadline) {
  if (journal_.on_disk()) {
    auto& kept = open_.at(record.view().id);
    kept.stage = "launched";
    kept.record = record.view();
    journal_.write(row_of(kept));
  }
  auto problem = co_await journal_.flush(deadline);
  if (!problem) tell("running", record);
  co_return problem;
}

asio::awaitable<std::optional<http::Problem>> CollectiveHistory::deciding(Record const& record, TimePoint deadline) {
  journal_.write(row_of(record.view().id, JournalDecision{record.view().run}));
  co_return co_await journal_.flush(deadline);
}

void CollectiveHistory::ended(Records const& records, Record const& record) {
  auto const& id = record.view().id;
  open_.erase(id);
  if (journal_.on_disk()) {
    auto kept = records.kept(record);
    kept.stage = "ended";
    journal_.write(row_of(kept));
    journal_.write(without(Table::decisions, id));
  }
  tell(record.view().state.c_str(), record);
}

void CollectiveHistory::forgotten(std::string const& id) { journal_.write(without(Table::collectives, id)); }

void CollectiveHistory::resumed(JournalCollective kept) {
  auto const id = kept.record.id;
  open_.emplace(id, std::move(kept));
}

}  // namespace chorus::coordinator
