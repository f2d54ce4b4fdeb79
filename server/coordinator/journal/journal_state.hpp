// The contents of the journal as values: one struct per table. docs/reference/journal.md lists the tables.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/api/cluster/events.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/api/parameters/parameters.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/topology/standing.hpp"

namespace chorus::coordinator {

struct JournalWorker {
  api::JoinRequest self;                  // its join request
  bool ready = true;                      // false: lost
  std::uint64_t joined = 0;               // position in the order of arrival
  std::vector<std::string> fenced;        // incarnations that this one has replaced, oldest first
  std::optional<std::uint32_t> lease_ms;  // promised lease; absent in journals of older releases
};

// Key: the name of a group or parameter. Rows of deleted ones remain.
struct JournalEpoch {
  std::uint32_t last = 0;                // the last epoch that was given
  std::optional<std::uint64_t> retired;  // position in the order of deletions; empty while the group exists
};

struct JournalGroup {
  api::Group group;
  std::optional<std::uint32_t> half_changed;  // an epoch that only some members accepted
  std::optional<PairLinks> pairs;             // by rank; for a group whose order is measured
  std::optional<GpuWays> gpu_ways;            // by rank; if GPUs join members
};

// Stages: `begun`, before any worker is told; `launched`, from before the first worker is told until the end; `ended`.
struct JournalCollective {
  std::uint64_t sequence = 0;      // position in the list of collectives
  std::optional<std::string> key;  // Idempotency-Key
  std::string stage;
  bool refused = false;             // ended before any worker was told
  std::optional<api::Group> group;  // members and epoch, without roles and selection; empty after the end
  api::Collective record;
};

// The decision to commit a collective. Key: id of the collective. Deleted when the collective has ended.
struct JournalDecision {
  std::uint64_t run = 0;
};

struct JournalParameter {
  api::ParameterRequest request;
  api::Parameter parameter;                       // completed, without endpoints
  std::optional<api::CheckpointName> checkpoint;  // has the first values; its number follows once known
  std::uint32_t clients_epoch = 0;
  bool established = false;  // its shards are in place
};

// A placement. Written before any worker hears of its epoch.
struct JournalShard {
  std::string parameter;
  std::uint32_t shard = 0;
  std::uint64_t begin = 0, end = 0;  // elements
  std::uint32_t epoch = 0;
  std::optional<api::Member> owner, backup;  // without roles
  std::optional<api::Member> incoming;       // worker that is being filled to own the shard
  bool backup_complete = false;
  std::uint32_t clients_epoch = 0;            // epoch of the clients that the owner knows
  std::optional<api::Member> former;          // the owner before `owner`, while `owner` has not confirmed
  bool owner_ended = false;                   // proved: the owner's process has ended
  bool backup_ended = false;                  // proved: the backup's process has ended
  std::optional<std::uint32_t> backup_epoch;  // epoch under which the backup was told its role
};

// Numbers that continue after a restart. event_log: the id of the event log.
enum class Counter : std::uint8_t { run, collective, epoch_floor, parameter_epoch_floor, event_log };

struct KeptCounter {
  std::uint64_t value = 0;
};

// All rows of a journal.
struct JournalState {
  std::vector<JournalWorker> workers;
  std::map<std::string, JournalEpoch> epochs;
  std::vector<JournalGroup> groups;
  std::vector<JournalCollective> collectives;
  std::map<std::string, JournalDecision> decisions;  // by id of the collective
  std::vector<api::Event> events;                    // in order of sequence
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

// Errors: JournalErrc::damaged for a row that its table cannot contain.
[[nodiscard]] Result<JournalState> parse_rows(std::span<Row const> rows);

}  // namespace chorus::coordinator
