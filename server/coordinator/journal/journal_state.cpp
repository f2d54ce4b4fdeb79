#include "server/coordinator/journal/journal_state.hpp"

#include <algorithm>
#include <array>

#include "http/api/described.hpp"

namespace chorus::topology {

BOOST_DESCRIBE_STRUCT(GpuWay, (), (a, b, gbyte_per_s))

constexpr auto required(GpuWay const*) { return std::array<std::string_view, 3>{"a", "b", "gbyte_per_s"}; }

}  // namespace chorus::topology

namespace chorus::coordinator {

BOOST_DESCRIBE_STRUCT(JournalWorker, (), (self, ready, joined, fenced, lease_ms))
BOOST_DESCRIBE_STRUCT(JournalEpoch, (), (last, retired))
BOOST_DESCRIBE_STRUCT(PairLink, (), (a, b, latency_s, bytes_per_s))
BOOST_DESCRIBE_STRUCT(GpuWays, (), (pairs, memory_gbyte_per_s, are_one))
BOOST_DESCRIBE_STRUCT(JournalGroup, (), (group, half_changed, pairs, gpu_ways))
BOOST_DESCRIBE_STRUCT(JournalCollective, (), (sequence, key, stage, refused, group, record))
BOOST_DESCRIBE_STRUCT(JournalDecision, (), (run))
BOOST_DESCRIBE_STRUCT(JournalParameter, (), (request, parameter, checkpoint, clients_epoch, established))
BOOST_DESCRIBE_STRUCT(JournalShard, (),
                      (parameter, shard, begin, end, epoch, owner, backup, incoming, backup_complete, clients_epoch,
                       former, owner_ended, backup_ended, backup_epoch))
BOOST_DESCRIBE_STRUCT(KeptCounter, (), (value))

constexpr auto required(JournalWorker const*) { return std::array<std::string_view, 2>{"self", "joined"}; }
constexpr auto required(JournalEpoch const*) { return std::array<std::string_view, 1>{"last"}; }
constexpr auto required(PairLink const*) {
  return std::array<std::string_view, 4>{"a", "b", "latency_s", "bytes_per_s"};
}
constexpr auto required(GpuWays const*) { return std::array<std::string_view, 1>{"pairs"}; }
constexpr auto required(JournalGroup const*) { return std::array<std::string_view, 1>{"group"}; }
constexpr auto required(JournalCollective const*) {
  return std::array<std::string_view, 3>{"sequence", "stage", "record"};
}
constexpr auto required(JournalDecision const*) { return std::array<std::string_view, 1>{"run"}; }
constexpr auto required(JournalParameter const*) { return std::array<std::string_view, 2>{"request", "parameter"}; }
constexpr auto required(JournalShard const*) {
  return std::array<std::string_view, 5>{"parameter", "shard", "begin", "end", "epoch"};
}
constexpr auto required(KeptCounter const*) { return std::array<std::string_view, 1>{"value"}; }

namespace {

constexpr std::array<std::pair<Counter, std::string_view>, 5> counters{
    {{Counter::run, "run"},
     {Counter::collective, "collective"},
     {Counter::epoch_floor, "epoch_floor"},
     {Counter::parameter_epoch_floor, "parameter_epoch_floor"},
     {Counter::event_log, "event_log"}}};

// Formats a number so that the texts sort like the numbers.
std::string key_of(std::uint64_t number) {
  auto const digits = std::to_string(number);
  return std::string(20 - digits.size(), '0') + digits;
}

// A '#' separates the two, because no name of a parameter contains one.
std::string key_of(std::string const& parameter, std::uint32_t shard) {
  constexpr std::size_t digits = 5;
  auto const number = std::to_string(shard);
  return parameter + "#" + std::string(digits - std::min(digits, number.size()), '0') + number;
}

Error misread(Row const& row, std::string const& why) {
  return {JournalErrc::damaged, "row '" + row.key + "' of table " + std::string(name(row.table)) +
                                    " is not what this release writes: " + why};
}

template <class Value, class Keep>
Status parse(Row const& row, Keep const& keep) {
  auto value = http::decode<Value>(*row.body, http::UnknownFields::ignore);
  if (!value) return misread(row, value.error().detail);
  keep(std::move(*value));
  return ok();
}

Status parse(Row const& row, JournalState& state) {
  switch (row.table) {
    case Table::workers:
      return parse<JournalWorker>(row, [&](JournalWorker worker) { state.workers.push_back(std::move(worker)); });
    case Table::epochs:
      return parse<JournalEpoch>(row, [&](JournalEpoch epoch) { state.epochs.emplace(row.key, epoch); });
    case Table::groups:
      return parse<JournalGroup>(row, [&](JournalGroup group) { state.groups.push_back(std::move(group)); });
    case Table::collectives:
      return parse<JournalCollective>(row,
                                      [&](JournalCollective kept) { state.collectives.push_back(std::move(kept)); });
    case Table::decisions:
      return parse<JournalDecision>(row, [&](JournalDecision decision) { state.decisions.emplace(row.key, decision); });
    case Table::events:
      return parse<api::Event>(row, [&](api::Event event) { state.events.push_back(std::move(event)); });
    case Table::parameters:
      return parse<JournalParameter>(row, [&](JournalParameter kept) { state.parameters.push_back(std::move(kept)); });
    case Table::shards:
      return parse<JournalShard>(row, [&](JournalShard kept) { state.shards.push_back(std::move(kept)); });
    case Table::parameter_epochs:
      return parse<JournalEpoch>(row, [&](JournalEpoch epoch) { state.parameter_epochs.emplace(row.key, epoch); });
    case Table::counters:
      break;
  }
  return parse<KeptCounter>(row, [&](KeptCounter counter) {
    for (auto const& [which, text] : counters)
      if (text == row.key) state.counters[which] = counter.value;
  });
}

}  // namespace

Row row_of(JournalWorker const& worker) { return {Table::workers, worker.self.id, http::encode(worker)}; }
Row row_of(std::string const& group, JournalEpoch const& epoch) { return {Table::epochs, group, http::encode(epoch)}; }
Row row_of(JournalGroup const& group) { return {Table::groups, group.group.name, http::encode(group)}; }
Row row_of(JournalCollective const& kept) { return {Table::collectives, kept.record.id, http::encode(kept)}; }
Row row_of(std::string const& collective, JournalDecision const& decision) {
  return {Table::decisions, collective, http::encode(decision)};
}
Row row_of(api::Event const& event) { return {Table::events, key_of(event.sequence), http::encode(event)}; }
Row row_of(Counter counter, std::uint64_t value) {
  auto const& text = counters.at(static_cast<std::size_t>(counter)).second;
  return {Table::counters, std::string(text), http::encode(KeptCounter{value})};
}
Row row_of(JournalParameter const& kept) { return {Table::parameters, kept.parameter.name, http::encode(kept)}; }
Row row_of(JournalShard const& kept) { return {Table::shards, key_of(kept.parameter, kept.shard), http::encode(kept)}; }
Row row_of_parameter(std::string const& parameter, JournalEpoch const& epoch) {
  return {Table::parameter_epochs, parameter, http::encode(epoch)};
}
Row without_shard(std::string const& parameter, std::uint32_t shard) {
  return without(Table::shards, key_of(parameter, shard));
}
Row without(Table table, std::string key) { return {table, std::move(key), std::nullopt}; }
Row without_event(std::uint64_t sequence) { return without(Table::events, key_of(sequence)); }

Result<JournalState> parse_rows(std::span<Row const> rows) {
  JournalState state;
  for (auto const& row : rows)
    if (auto done = parse(row, state); !done) return done.error();
  return state;
}

}  // namespace chorus::coordinator
