// The parameters and the workers of their shards: placed when a parameter is made, and placed again when a worker is
// lost or a group changes. The values never come here.
//
// A change of a shard's placement is a new epoch, sent to the workers concerned. The journal has a placement, including
// the owner, before any worker hears of it. After a crash the coordinator continues from the journal, and asks the
// workers for the rest.
//
// A silent worker may come back with its data. A shard whose owner is silent, and of which no other worker has a copy,
// therefore waits. It is lost only when all workers that had it have ended, or when it is given up.
// docs/explanation/parameters.md says why two owners never take pushes at once.
#pragma once

#include "server/coordinator/parameters/placement_recovery.hpp"
#include "server/coordinator/placements/shard_repair.hpp"

namespace chorus::coordinator {

// Used on one thread. The objects in the tools outlive stop().
class ParameterDirectory {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    Cluster& cluster;
    Journal& journal;
    spdlog::logger& log;
    Random random;
  };
  ParameterDirectory(Tools tools, DirectoryPatience patience);
  ParameterDirectory(ParameterDirectory const&) = delete;
  ParameterDirectory& operator=(ParameterDirectory const&) = delete;

  // restore() takes the state of the journal. recover(), called when the cluster has been restored and calls can be
  // made, compares it with the shards of the workers, finishes unfinished work, and drops unknown shards.
  void restore(JournalState const& state);
  void recover();

  struct Made {
    api::Parameter parameter;
    bool created = false;
  };
  // Makes a parameter, and returns when all shards are in place. The same request again returns the same parameter.
  // With `recreate` a lost or unavailable parameter is deleted first, when no lease of its workers can be valid any
  // more.
  // Problems: those of check_parameter; unknown_group, group_broken; already_exists for another request under the name;
  // worker_unreachable and a worker's problems, after which nothing is left of the parameter; those of Journal::flush;
  // unavailable if a worker of a deleted parameter of this name neither drops its shard nor loses its lease in time.
  boost::asio::awaitable<http::Checked<Made>> put(std::string name, api::ParameterRequest request);
  // Problems: unknown_parameter, and those of Journal::flush.
  boost::asio::awaitable<std::optional<http::Problem>> erase(std::string name);
  [[nodiscard]] http::Checked<api::Parameter> find(std::string_view name) const;
  // Ends the wait of shards for silent workers: these shards are lost, even if a worker comes back. Other shards stay
  // as they are. Problems: unknown_parameter, and those of Journal::flush.
  boost::asio::awaitable<http::Checked<api::Parameter>> give_up(std::string name);

  // A live worker reports that it does not have this shard any more, because its device has failed.
  void shard_lost(std::string const& name, std::uint32_t shard, std::string const& worker,
                  std::string const& incarnation);

  using RecordPtr = ParameterRecordPtr;
  [[nodiscard]] ParameterRecords::All const& all() const { return records_.all(); }
  [[nodiscard]] api::Parameter show(ParameterRecord const& record) const;

  // Returns "ready", "degraded", "unavailable" or "lost".
  [[nodiscard]] char const* state_of(ParameterRecord const& record) const;

  // This incarnation is silent: its backups take over.
  void worker_lost(std::string const& worker, std::string const& incarnation);
  // The process of this incarnation has ended.
  void worker_ended(std::string const& worker, std::string const& incarnation);
  // A worker has joined. The same incarnation still has its shards; a new one has what its log contains.
  void worker_joined(std::string const& worker);
  // The group has other members: shards move to them and are balanced, and the set of clients changes.
  void group_changed(std::string const& group);

  // Moves the shards of a worker that is about to leave to other workers, which are filled first. Returns when the
  // worker has no shard any more, when no other worker can take them, or at the deadline. Returns the number of shards
  // that are left. Problem: unavailable if this coordinator stops before; the next one may be asked again.
  boost::asio::awaitable<http::Checked<std::size_t>> hand_over(std::string worker, std::string incarnation,
                                                               TimePoint deadline);

  boost::asio::awaitable<void> stop();

 private:
  [[nodiscard]] http::Checked<std::vector<api::Member>> members_for(api::ParameterRequest const& request) const;
  // Makes room for another parameter of the name, if this one does not stand.
  boost::asio::awaitable<void> give_way(RecordPtr record);
  boost::asio::awaitable<void> go_on_without_backup(RecordPtr record, std::uint32_t shard);
  void look_for_backups(std::string const& worker);
  [[nodiscard]] Membership const& membership() const { return tools_.cluster.membership(); }

  PlacementTools const tools_;
  ParameterRecords records_{tools_};
  Candidates candidates_{tools_.cluster};
  RepairQueue queue_{tools_, records_};
  ShardDrops drops_{tools_};
  ShardRoles roles_{tools_, records_};
  ShardOwners owners_{tools_, records_, roles_, drops_};
  ShardRepair repair_{tools_, {records_, candidates_, queue_, roles_, drops_, owners_}};
  ParameterLifecycle lifecycle_{tools_, {records_, queue_, roles_, drops_}};
  PlacementRecovery recovery_{tools_, {records_, queue_, drops_, lifecycle_}};
  bool is_stopping_ = false;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
