// What the journal keeps, as values: one struct per table. docs/reference/journal.md shows them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "http/api/collectives.hpp"
#include "http/api/events.hpp"
#include "http/api/groups.hpp"
#include "http/api/membership.hpp"
#include "http/api/parameters.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/topology/standing.hpp"

namespace chorus::coordinator {

struct JournalWorker {
  api::JoinRequest self;                  // as it joined
  bool ready = true;                      // false: lost
  std::uint64_t joined = 0;               // the order of arrival
  std::vector<std::string> fenced;        // incarnations that it has replaced, oldest first
  std::optional<std::uint32_t> lease_ms;  // that it was promised; absent in journals of former releases
};

// By name of the group or parameter, also of those that were deleted.
struct JournalEpoch {
  std::uint32_t last = 0;                // that was drawn
  std::optional<std::uint64_t> retired;  // the it was deleted: the how-manieth
};

struct JournalGroup {
  api::Group group;
  std::optional<std::uint32_t> half_changed;  // the epoch that reached only some members
  std::optional<PairLinks> pairs;             // by rank, of a group whose order is measured
  std::optional<GpuWays> gpu_ways;            // by rank, where members are joined by their GPUs
};

// `stage` is begun, before any worker was told; launched, from before the first to the end; or ended.
struct JournalCollective {
  std::uint64_t sequence = 0;      // its place in the list
  std::optional<std::string> key;  // Idempotency-Key
  std::string stage;
  bool refused = false;             // it ended before anything was launched
  std::optional<api::Group> group;  // until it has ended: members and epoch, without roles and selection
  api::Collective record;
};

// That a collective is to be committed, by its id. Gone when the collective has ended.
struct JournalDecision {
  std::uint64_t run = 0;
};

struct JournalParameter {
  api::ParameterRequest request;
  api::Parameter parameter;                       // completed, without endpoints
  std::optional<api::CheckpointName> checkpoint;  // that it begins with, and its number as soon as that is known
  std::uint32_t clients_epoch = 0;
  bool established = false;  // its shards are in place
};

// Written before any worker hears of the epoch.
struct JournalShard {
  std::string parameter;
  std::uint32_t shard = 0;
  std::uint64_t begin = 0, end = 0;  // elements
  std::uint32_t epoch = 0;
  std::optional<api::Member> owner, backup;  // without roles
  std::optional<api::Member> incoming;       // that was being filled to own it
  bool backup_complete = false;
  std::uint32_t clients_epoch = 0;    // of the clients that its owner knows
  std::optional<api::Member> former;  // owned it before the present owner, which has not confirmed yet
  bool owner_ended = false;           // proved: its process lives no more
  bool backup_ended = false;
  std::optional<std::uint32_t> backup_epoch;  // under which it was told to be the backup
};

// event_log: the id of the event log.
enum class Counter : std::uint8_t { run, collective, epoch_floor, parameter_epoch_floor, event_log };

struct KeptCounter {
  std::uint64_t value = 0;
};

struct JournalState {
  std::vector<JournalWorker> workers;
  std::map<std::string, JournalEpoch> epochs;
  std::vector<JournalGroup> groups;
  std::vector<JournalCollective> collectives;
  std::set<std::string> decisions;
  std::vector<api::Event> events;  // in order
  std::map<Counter, std::uint64_t> counters;
  std::vector<JournalParameter> parameters;
  std::vector<JournalShard> shards;  // by parameter and number
  std::map<std::string, JournalEpoch> parameter_epochs;
};

[[nodiscard]] Row row_of(JournalWorker const& worker);
[[nodiscard]] Row row_of(std::string const& group, JournalEpoch const& epoch);
[[nodiscard]] Row row_of_parameter(std::string const& parameter, JournalEpoch const& epoch);
[[nodiscard]] Row row_of(JournalGroup const& group);
[[nodiscard]] Row row_of(JournalCollective const& collective);
[[nodiscard]] Row row_of(std::string const& collective, JournalDecision const& decision);
[[nodiscard]] Row row_of(api::Event const& event);
[[nodiscard]] Row row_of(Counter counter, std::uint64_t value);
[[nodiscard]] Row row_of(JournalParameter const& parameter);
[[nodiscard]] Row row_of(JournalShard const& shard);
[[nodiscard]] Row without_shard(std::string const& parameter, std::uint32_t shard);
[[nodiscard]] Row without(Table table, std::string key);
[[nodiscard]] Row without_event(std::uint64_t sequence);

// Errors: JournalErrc::damaged for a row that is not what its table holds.
[[nodiscard]] Result<JournalState> parse_rows(std::span<Row const> rows);

}  // namespace chorus::coordinator
