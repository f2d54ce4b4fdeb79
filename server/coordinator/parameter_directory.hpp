// Which parameters there are, and which workers have their shards: placed when they are made, placed anew when a worker
// is lost or a group changes. The bytes never come here.
//
// A change of a shard's placement is a new epoch, told to the workers that are concerned. A backup that takes over
// knows by itself whether it has everything that was acknowledged, and refuses otherwise. The journal has a placement
// before any worker hears of it, so a coordinator that was killed goes on from there, and asks the workers for the
// rest.
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

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "server/coordinator/cluster.hpp"
#include "server/coordinator/epochs.hpp"
#include "server/coordinator/placement.hpp"
#include "server/coordinator/shard_orders.hpp"
#include "server/coordinator/worker_client.hpp"

namespace chorus::coordinator {

struct DirectoryPatience {
  std::chrono::milliseconds assignment{5000};  // for a worker to take a shard
  std::chrono::milliseconds loading{600'000};  // ... that is read from a checkpoint
  std::chrono::milliseconds repetition{100};   // between attempts to repair a placement
  // Until those are asked again that could not have the backup of a shard, where nobody else could.
  std::chrono::milliseconds second_thoughts{5000};
  std::size_t most_takeovers = 512;             // at a time
  std::chrono::milliseconds settling{600'000};  // for a new copy of a shard to be complete
  std::chrono::milliseconds recovery{5000};     // for workers to say what they have, after a restart
  std::size_t most_moves = 2;                   // shards that are copied at a time because a group has changed
};

// On one thread. What the tools refer to outlives stop().
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

  // What the journal has kept; then, once the cluster has been restored and calls can be made, what workers hold is
  // compared with it: what was under way is ended, what nobody knows any more is dropped.
  void restore(KeptState const& state);
  void recover();

  struct Made {
    api::Parameter parameter;
    bool created = false;
  };
  // Returns when all shards are in place. The same request again finds what it made. Problems: those of
  // check_parameter; unknown_group, group_broken; already_exists for another request under the name; worker_unreachable
  // and what a worker answered: then nothing is left of it; those of Journal::flush.
  boost::asio::awaitable<http::Checked<Made>> put(std::string name, api::ParameterRequest request);
  // Problems: unknown_parameter, and those of Journal::flush.
  boost::asio::awaitable<std::optional<http::Problem>> erase(std::string name);
  [[nodiscard]] http::Checked<api::Parameter> find(std::string_view name) const;

  // A worker lives, and says that it does not have this shard any more: its device has failed.
  void shard_lost(std::string const& name, std::uint32_t shard, std::string const& worker,
                  std::string const& incarnation);

  struct Shard {
    static constexpr auto never_told = UINT32_MAX;  // an epoch of clients

    ElementRange range;
    std::uint32_t epoch = 0;
    std::optional<api::Member> owner, backup;
    std::optional<api::Member> incoming;  // is filled beside the backup, and owns it then
    bool is_backup_complete = false;
    bool is_unbalanced = false;                      // the group has changed: it may belong elsewhere
    bool is_busy = false, is_urgently_busy = false;  // somebody repairs it
    bool is_looked_at_later = false;                 // those who could not have its backup are asked again
    std::uint32_t clients_epoch = 0;                 // of the clients that its owner knows
    std::string refused_by;                          // an incarnation of its owner, which could not read its log
    std::string why_refused;
    std::string lost_by;  // an incarnation of its owner, which lives and says that it does not have it
  };
  struct Record {
    Record(boost::asio::any_io_executor executor) : changed(std::move(executor)) {}
    api::ParameterRequest request;
    api::Parameter parameter;                       // without endpoints
    std::optional<api::CheckpointName> checkpoint;  // with its number
    std::vector<Shard> shards;
    std::uint32_t clients_epoch = 0;
    bool is_established = false, is_deleted = false;
    bool is_resumed = false;              // of the last life
    std::size_t pending = 0;              // shards that are being established
    std::vector<http::Problem> problems;  // why that failed
    http::Condition changed;
  };
  using RecordPtr = std::shared_ptr<Record>;
  [[nodiscard]] std::map<std::string, RecordPtr, std::less<>> const& all() const { return records_; }
  [[nodiscard]] api::Parameter show(Record const& record) const;

  // That incarnation is gone: its backups take over.
  void worker_lost(std::string const& worker, std::string const& incarnation);
  // A worker has come, or come back: an owner that kept a log goes on with what it says.
  void worker_joined(std::string const& worker);
  // The group has other members: shards move to them, also to balance the load, and their clocks count.
  void group_changed(std::string const& group);

  // A worker is about to leave: others take over what it has, copies first. Returns when it has nothing any more, or
  // nobody else can take it, or at the deadline. Gives how many shards it is left with.
  boost::asio::awaitable<std::size_t> hand_over(std::string worker, std::string incarnation, TimePoint deadline);

  boost::asio::awaitable<void> stop();

 private:
  using Key = std::pair<std::string, std::uint32_t>;  // a parameter and the number of a shard

  struct Survey;
  boost::asio::awaitable<void> recover_placements();
  boost::asio::awaitable<void> ask_what_it_has(std::shared_ptr<Survey> survey, api::Member worker);
  void compare(RecordPtr const& record, std::uint32_t shard, Survey const& survey);
  void drop_orphans(Survey const& survey);
  void keep(Record const& record);
  void keep(Record const& record, std::uint32_t shard);
  void forget(Record const& record);

  [[nodiscard]] RecordPtr place(CheckedParameter checked, api::ParameterRequest request,
                                std::vector<api::Member> const& members);
  void remove(RecordPtr const& record);
  boost::asio::awaitable<void> establish(RecordPtr record);
  boost::asio::awaitable<std::optional<http::Problem>> settle_checkpoint(RecordPtr record);
  boost::asio::awaitable<void> establish_shard(RecordPtr record, std::uint32_t shard);
  boost::asio::awaitable<void> drop(api::Member member, std::string name, std::uint32_t shard, std::uint32_t epoch);

  // Repairs: those without an owner first, and many at a time; copies and moves few at a time.
  void look_again(Key const& key);
  void begin_work(bool urgent);
  boost::asio::awaitable<void> work_off(bool urgent);
  boost::asio::awaitable<void> settle_losses(RecordPtr record, std::uint32_t shard);
  boost::asio::awaitable<void> restore_replicas(RecordPtr record, std::uint32_t shard);
  // Without a moment in which there are fewer copies.
  boost::asio::awaitable<bool> move_owner(RecordPtr record, std::uint32_t shard, api::Member to);
  void set_incoming(RecordPtr const& record, std::uint32_t shard, std::optional<api::Member> member);
  [[nodiscard]] std::uint64_t load_of(Record const& record, std::uint32_t shard) const;
  enum class Added : std::uint8_t { complete, not_yet, refused };  // refused: by the worker; somebody else may
  boost::asio::awaitable<Added> add_backup(RecordPtr record, std::uint32_t shard, api::Member backup);
  boost::asio::awaitable<void> look_again_later(RecordPtr record, std::uint32_t shard);
  boost::asio::awaitable<std::optional<http::Problem>> promote(RecordPtr record, std::uint32_t shard);
  boost::asio::awaitable<std::optional<http::Problem>> tell(RecordPtr record, std::uint32_t shard, api::Member member,
                                                            bool as_owner, bool fresh, bool continues = false,
                                                            bool recover = false);
  // The owner that is gone, if it is there again and has a log; nothing as long as it is waited for.
  boost::asio::awaitable<void> go_on_without_backup(RecordPtr record, std::uint32_t shard);
  [[nodiscard]] std::optional<api::Member> returned_owner(Record const& record, Shard const& shard) const;
  [[nodiscard]] bool waits_for_owner(Record const& record, Shard const& shard) const;
  boost::asio::awaitable<std::optional<http::Problem>> recover_owner(RecordPtr record, std::uint32_t shard,
                                                                     api::Member owner);
  [[nodiscard]] bool has_owner(Shard const& shard) const;
  void heed_loss(Record& record, std::uint32_t shard, http::Problem const& problem);
  void heed_epoch(std::string const& name, std::string const& seen);
  boost::asio::awaitable<bool> until_complete(RecordPtr record, std::uint32_t shard, api::Member backup);
  boost::asio::awaitable<void> pause(std::chrono::milliseconds duration);

  void set(RecordPtr const& record, std::uint32_t shard, bool owner, std::optional<api::Member> member);
  void draw_epoch(Record& record, std::uint32_t shard);
  [[nodiscard]] bool is_ready(api::Member const& member) const;
  [[nodiscard]] std::vector<api::Member> ready_members(std::string const& group) const;
  void update_clients(Record& record) const;

  Tools const tools_;
  DirectoryPatience const patience_;
  std::map<std::string, RecordPtr, std::less<>> records_;
  std::map<std::string, std::set<Key>, std::less<>> shards_on_;  // by worker, whatever the role
  std::map<std::string, std::set<std::string>, std::less<>> of_group_;
  Epochs epochs_{names_kept};
  Load load_;
  std::deque<Key> urgent_, later_;
  std::size_t working_urgently_ = 0, working_later_ = 0;
  std::set<std::pair<std::string, std::string>> leaving_;  // worker, incarnation
  bool is_stopping_ = false;
  bool is_recovering_ = false;  // nothing is repaired before it is known what there is
  ShardOrders orders_;
  http::TaskGroup tasks_;

  static constexpr std::size_t names_kept = 4096;
};

}  // namespace chorus::coordinator
