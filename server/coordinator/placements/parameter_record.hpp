// One parameter with the placements of its shards, and what can be done with these at the moment. The answers depend on
// the record and on the membership alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/runtime/condition.hpp"
#include "server/coordinator/membership/membership.hpp"
#include "server/coordinator/placements/placement.hpp"

namespace chorus::coordinator {

using ShardKey = std::pair<std::string, std::uint32_t>;  // a parameter and the number of a shard

struct ShardPlacement {
  static constexpr auto never_told = UINT32_MAX;  // value of clients_epoch

  struct Copy {
    api::Member holder;
    std::uint32_t epoch = 0;
  };

  ElementRange range;
  bool has_log = false;  // the owner's log has the data, also when the owner's process has ended
  std::uint32_t epoch = 0;
  std::optional<api::Member> owner, backup;
  std::optional<api::Member> incoming;  // filled beside the backup, and then the new owner
  bool is_backup_complete = false;
  bool is_unbalanced = false;                          // the group has changed: another owner may be better
  bool is_busy = false, is_urgently_busy = false;      // being repaired
  bool is_queued = false, is_urgently_queued = false;  // to be looked at
  bool is_looked_at_later = false;                     // workers that refused its backup are asked again later
  std::uint32_t clients_epoch = 0;                     // version of the clients that the owner knows
  std::string refused_by;                              // incarnation of the owner that could not read its log
  std::string why_refused;
  std::string lost_by;  // incarnation of the owner that lives and reports that it does not have the shard
  // Owner before the present one, which has not yet confirmed that it owns the shard.
  std::optional<api::Member> former;
  bool is_unconfirmed = false;  // the owner takes no pushes before it is told once more that it is the owner
  bool owner_has_ended = false, backup_has_ended = false;  // their processes have ended
  bool is_backup_unfit = false;                            // the backup reports that it does not have everything
  std::uint32_t backup_epoch = 0;                          // epoch in which it was told to be the backup
  std::vector<Copy> superseded;                            // dropped when the owner is confirmed

  [[nodiscard]] bool has_owner(Membership const& membership) const;
  [[nodiscard]] bool has_heir(Membership const& membership) const;
  // True if the owner's data are gone: its process has ended, or reports the loss, and there is no log.
  [[nodiscard]] bool has_lost_owner() const;
  [[nodiscard]] bool is_lost() const;
  // True if nothing can be done before a worker comes.
  [[nodiscard]] bool waits(Membership const& membership) const;
  // True if an owner that is back could not take its shard from its log, and is asked again.
  [[nodiscard]] bool has_refused(Membership const& membership) const;
  // True if the shard serves no client, or its owner acknowledges nothing because the backup is dead.
  [[nodiscard]] bool is_urgent(Membership const& membership) const;
  // Returns the new incarnation of the owner if it is ready and may read its log; empty otherwise.
  [[nodiscard]] std::optional<api::Member> returned_owner(Membership const& membership) const;
  // All workers that may have a copy, with its epoch.
  [[nodiscard]] std::vector<Copy> copies() const;

  // Marks owner and backup as ended if they are other incarnations of the worker than the present one, because their
  // data are gone.
  void note_end(std::string const& worker, std::string const& present);
  // Handles the owner's report that it does not have its shard. If no other worker has the shard but the owner's log
  // may, the shard waits for the owner's next incarnation, which reads the log.
  void heed_loss(http::Problem const& problem);
  // The owner has confirmed that it owns the shard. Returns the copies that are not needed any more.
  [[nodiscard]] std::vector<Copy> confirm();
};

// Shared by the tasks that work on it, also after it was deleted.
struct ParameterRecord {
  ParameterRecord(boost::asio::any_io_executor executor) : changed(std::move(executor)) {}
  api::ParameterRequest request;
  api::Parameter parameter;                       // without endpoints
  std::optional<api::CheckpointName> checkpoint;  // includes its number
  std::vector<ShardPlacement> shards;
  std::uint32_t clients_epoch = 0;
  bool is_established = false, is_deleted = false;
  bool is_resumed = false;              // from the previous process
  std::size_t pending = 0;              // shards being established
  std::vector<http::Problem> problems;  // reasons why that failed
  http::Condition changed;

  // Bytes that a shard counts on its workers.
  [[nodiscard]] std::uint64_t load_of(std::uint32_t shard) const;
  // Returns "ready", "degraded", "unavailable" or "lost".
  [[nodiscard]] char const* state(Membership const& membership) const;
  // Returns why the parameter is lost or unavailable; empty otherwise.
  [[nodiscard]] std::string why(Membership const& membership) const;
  [[nodiscard]] api::Parameter show(Membership const& membership) const;
};
using ParameterRecordPtr = std::shared_ptr<ParameterRecord>;

// Returns a member for messages.
[[nodiscard]] std::string shown(api::Member const& member);

}  // namespace chorus::coordinator
