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

#include <spdlog/logger.h>

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/groups/epochs.hpp"
#include "server/coordinator/membership/worker_client.hpp"
#include "server/coordinator/parameters/placement.hpp"
#include "server/coordinator/parameters/shard_assignments.hpp"

namespace chorus::coordinator {

struct DirectoryPatience {
  std::chrono::milliseconds assignment{5000};  // for a worker to take a shard
  std::chrono::milliseconds loading{600'000};  // for a worker to take a shard that it reads from a checkpoint
  std::chrono::milliseconds repetition{100};   // between attempts to repair a placement
  // Time until workers that refused a backup are asked again, if no other worker can have it.
  std::chrono::milliseconds second_thoughts{5000};
  std::size_t most_takeovers = 512;             // at the same time
  std::chrono::milliseconds settling{600'000};  // for a new copy of a shard to be complete
  std::chrono::milliseconds recovery{5000};     // for workers to report their shards after a restart
  std::chrono::milliseconds dropping{15'000};   // for workers to drop a deleted parameter before its name is used again
  std::size_t most_moves = 2;                   // shards copied at the same time because a group has changed
};

// Used on one thread. The objects in the tools outlive stop().
class ParameterDirectory {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    Cluster& cluster;
    Journal& journal;
    spdlog::logger& log;
  };
  ParameterDirectory(Tools tools, DirectoryPatience patience);
  ~ParameterDirectory();
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

  struct Shard {
    static constexpr auto never_told = UINT32_MAX;  // value of clients_epoch

    ElementRange range;
    std::uint32_t epoch = 0;
    std::optional<api::Member> owner, backup;
    std::optional<api::Member> incoming;  // filled beside the backup, and then the new owner
    bool is_backup_complete = false;
    bool is_unbalanced = false;                      // the group has changed: another owner may be better
    bool is_busy = false, is_urgently_busy = false;  // being repaired
    bool is_looked_at_later = false;                 // workers that refused its backup are asked again later
    std::uint32_t clients_epoch = 0;                 // version of the clients that the owner knows
    std::string refused_by;                          // incarnation of the owner that could not read its log
    std::string why_refused;
    std::string lost_by;  // incarnation of the owner that lives and reports that it does not have the shard
    // Owner before the present one, which has not yet confirmed that it owns the shard.
    std::optional<api::Member> former;
    bool is_unconfirmed = false;  // the owner takes no pushes before it is told once more that it is the owner
    bool owner_has_ended = false, backup_has_ended = false;  // their processes have ended
    bool is_backup_unfit = false;                            // the backup reports that it does not have everything
    std::uint32_t backup_epoch = 0;                          // epoch in which it was told to be the backup
    // Copies with their epochs, which are dropped when the owner is confirmed.
    std::vector<std::pair<api::Member, std::uint32_t>> superseded;
  };
  struct Record {
    Record(boost::asio::any_io_executor executor) : changed(std::move(executor)) {}
    api::ParameterRequest request;
    api::Parameter parameter;                       // without endpoints
    std::optional<api::CheckpointName> checkpoint;  // includes its number
    std::vector<Shard> shards;
    std::uint32_t clients_epoch = 0;
    bool is_established = false, is_deleted = false;
    bool is_resumed = false;              // from the previous process
    std::size_t pending = 0;              // shards being established
    std::vector<http::Problem> problems;  // reasons why that failed
    http::Condition changed;
  };
  using RecordPtr = std::shared_ptr<Record>;
  [[nodiscard]] std::map<std::string, RecordPtr, std::less<>> const& all() const { return records_; }
  [[nodiscard]] api::Parameter show(Record const& record) const;

  // Returns "ready", "degraded", "unavailable" or "lost".
  [[nodiscard]] char const* state_of(Record const& record) const;

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
  // that are left.
  boost::asio::awaitable<std::size_t> hand_over(std::string worker, std::string incarnation, TimePoint deadline);

  boost::asio::awaitable<void> stop();

 private:
  using Key = std::pair<std::string, std::uint32_t>;  // a parameter and the number of a shard

  struct Survey;
  boost::asio::awaitable<void> recover_placements();
  boost::asio::awaitable<void> ask_what_it_has(std::shared_ptr<Survey> survey, api::Member worker);
  void compare(RecordPtr const& record, std::uint32_t shard, Survey const& survey);
  void dispose(Survey const& survey);
  boost::asio::awaitable<void> tidy(std::string worker);
  void look_for_backups(std::string const& worker);
  void drop_superseded(Record& record, std::uint32_t shard);
  void keep(Record const& record);
  void keep(Record const& record, std::uint32_t shard);
  void forget(Record const& record);

  [[nodiscard]] http::Checked<std::vector<api::Member>> members_for(api::ParameterRequest const& request) const;
  [[nodiscard]] RecordPtr place(CheckedParameter checked, api::ParameterRequest request,
                                std::vector<api::Member> const& members);
  void remove(RecordPtr const& record);
  boost::asio::awaitable<void> establish(RecordPtr record);
  boost::asio::awaitable<std::optional<http::Problem>> settle_checkpoint(RecordPtr record);
  boost::asio::awaitable<void> establish_shard(RecordPtr record, std::uint32_t shard);
  boost::asio::awaitable<void> drop(api::Member member, std::string name, std::uint32_t shard, std::uint32_t epoch);
  void drop_deleted(std::string const& name, std::uint32_t shard, std::uint32_t epoch, api::Member const& member);
  boost::asio::awaitable<void> drop_to_the_end(api::Member member, std::string name, std::uint32_t shard,
                                               std::uint32_t epoch);
  boost::asio::awaitable<std::optional<http::Problem>> until_dropped(std::string name);

  // Repairs. Shards without an owner come first, many at a time; copies and moves follow, few at a time.
  void look_again(Key const& key);
  void begin_work(bool urgent);
  boost::asio::awaitable<void> work_off(bool urgent);
  boost::asio::awaitable<void> settle_losses(RecordPtr record, std::uint32_t shard);
  boost::asio::awaitable<void> restore_replicas(RecordPtr record, std::uint32_t shard);
  // Moves the owner without reducing the number of copies at any moment.
  boost::asio::awaitable<bool> move_owner(RecordPtr record, std::uint32_t shard, api::Member to);
  void set_incoming(RecordPtr const& record, std::uint32_t shard, std::optional<api::Member> member);
  [[nodiscard]] std::uint64_t load_of(Record const& record, std::uint32_t shard) const;
  enum class Added : std::uint8_t { complete, not_yet, refused };  // refused by the worker; another one may take it
  boost::asio::awaitable<Added> add_backup(RecordPtr record, std::uint32_t shard, api::Member backup);
  boost::asio::awaitable<void> look_again_later(RecordPtr record, std::uint32_t shard);
  boost::asio::awaitable<std::optional<http::Problem>> promote(RecordPtr record, std::uint32_t shard);
  void hand_to(RecordPtr const& record, std::uint32_t shard, api::Member heir);
  boost::asio::awaitable<std::optional<http::Problem>> confirm_owner(RecordPtr record, std::uint32_t shard);
  void return_to_former(RecordPtr const& record, std::uint32_t shard);
  boost::asio::awaitable<std::optional<http::Problem>> tell(RecordPtr record, std::uint32_t shard, api::Member member,
                                                            bool as_owner, bool fresh, bool continues = false,
                                                            bool recover = false);
  // Removes the backup; the owner takes no pushes until it knows.
  boost::asio::awaitable<void> go_on_without_backup(RecordPtr record, std::uint32_t shard);
  // Returns the new incarnation of the owner if it is ready and may read its log; empty otherwise.
  [[nodiscard]] std::optional<api::Member> returned_owner(Record const& record, Shard const& shard) const;
  [[nodiscard]] bool has_heir(Shard const& shard) const;
  [[nodiscard]] bool has_lost_owner(Record const& record, Shard const& shard) const;
  [[nodiscard]] bool waits(Record const& record, Shard const& shard) const;
  [[nodiscard]] bool has_refused(Record const& record, Shard const& shard) const;
  [[nodiscard]] bool is_lost(Record const& record, Shard const& shard) const;
  [[nodiscard]] std::string whom_waits_for(Record const& record) const;
  [[nodiscard]] bool refuses_its_log(Shard const& shard) const;
  void note_end(Shard& shard, std::string const& worker, std::string const& present) const;
  boost::asio::awaitable<void> until_leases_end(RecordPtr record);
  [[nodiscard]] TimePoint end_of_lease(api::Member const& member) const;  // in the past unless the worker is silent
  boost::asio::awaitable<std::optional<http::Problem>> recover_owner(RecordPtr record, std::uint32_t shard,
                                                                     api::Member owner);
  [[nodiscard]] bool has_owner(Shard const& shard) const;
  [[nodiscard]] std::optional<std::uint64_t> term_of(api::Member const& member) const;  // term of its lease
  void heed_loss(Record& record, std::uint32_t shard, http::Problem const& problem);
  void heed_epoch(std::string const& name, std::string const& seen);
  boost::asio::awaitable<bool> until_complete(RecordPtr record, std::uint32_t shard, api::Member backup);
  boost::asio::awaitable<void> pause(std::chrono::milliseconds duration);
  boost::asio::awaitable<void> pause_until(TimePoint end);

  void set(RecordPtr const& record, std::uint32_t shard, bool owner, std::optional<api::Member> member);
  void draw_epoch(Record& record, std::uint32_t shard);
  [[nodiscard]] bool is_ready(api::Member const& member) const;
  [[nodiscard]] std::vector<api::Member> ready_members(std::string const& group) const;
  void update_clients(Record& record) const;

  Tools const tools_;
  DirectoryPatience const patience_;
  std::map<std::string, RecordPtr, std::less<>> records_;
  std::map<std::string, std::set<Key>, std::less<>> shards_on_;  // by worker, in any role
  std::map<std::string, std::set<std::string>, std::less<>> of_group_;
  std::map<std::string, std::size_t, std::less<>> dropping_;  // deleted parameters that are still served
  http::Condition dropped_;
  Epochs epochs_{names_kept};
  Load load_;
  std::deque<Key> urgent_, later_;
  std::size_t working_urgently_ = 0, working_later_ = 0;
  std::set<std::pair<std::string, std::string>> leaving_;  // worker, incarnation
  bool is_stopping_ = false;
  bool is_recovering_ = false;  // no repairs before the shards of the workers are known
  ShardAssignments orders_;
  http::TaskGroup tasks_;

  static constexpr std::size_t names_kept = 4096;
};

}  // namespace chorus::coordinator
