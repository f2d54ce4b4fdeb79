// Serves one shard: applies pushes one after the other, lets readers wait for the version that they need, keeps backups
// in step.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "http/client/peer_client.hpp"
#include "worker/parameters/disk/disk.hpp"
#include "worker/parameters/serving/followers.hpp"
#include "worker/parameters/serving/history.hpp"
#include "worker/parameters/serving/owner_lease.hpp"
#include "worker/parameters/serving/shard_offload.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {

// Callbacks about events of shards, for metrics and logs. Called on the control thread; each may be empty.
struct ShardEvents {
  std::function<void(std::string_view kind, std::string_view result, double seconds)> pushed;
  std::function<void(std::uint64_t clocks)> read_behind;  // how far the slowest client is behind the reader
  std::function<void(std::string_view what)> waited;      // "pull" or "push"
  std::function<void(std::uint64_t elements)> nonfinite;
  std::function<void(std::uint64_t rows)> rows_created;  // in a shard that is owned here
  std::function<void(std::uint64_t records, std::uint64_t bytes, double seconds)> logged;  // with one sync
  std::function<void()> log_truncated;
  // This worker has lost the shard: its device has failed, or a backup has missed a push.
  std::function<void(std::string const& parameter, std::uint32_t shard, std::string const& why)> lost;
  std::function<void(std::string const& shard, std::string const& why)> log_failed;
  // A backup does not answer; the receiver checks whether it lives.
  std::function<void(std::string const& worker, std::string const& incarnation)> unreachable;
};

// The objects that all hosts of a worker share. Outlives them.
struct ShardTools {
  boost::asio::any_io_executor executor;  // of the control thread
  boost::asio::any_io_executor threads;   // for arithmetic on large shards
  http::PeerClient client;
  tensors::Pool& pool;
  ShardEvents events;
  std::uint64_t fill_bytes_per_second = 256 << 20;  // to a new backup
  // For push logs of owners, if a parameter asks for them.
  struct Logs {
    Disk* disk = nullptr;
    std::string root;                         // "": this worker keeps no logs
    std::uint64_t snapshot_bytes = 64 << 20;  // least size of pushes before a new base is written
  };
  Logs logs = {};
  devices::Gpus const* gpus = nullptr;  // null: no shard is on a GPU
  OwnerLease const* lease = nullptr;    // null: owners need no lease

  [[nodiscard]] ShardMemory memory() const { return {pool, gpus}; }
};

// Used on the control thread. Call stop() before it is destroyed. Every coroutine that awaits a call holds it by
// std::shared_ptr.
class ShardHost : public std::enable_shared_from_this<ShardHost> {
 public:
  enum class Role { owner, backup };

  ShardHost(ShardTools const& tools, std::unique_ptr<Shard> shard, api::ShardAssignment const& assignment);
  ~ShardHost();
  ShardHost(ShardHost const&) = delete;
  ShardHost& operator=(ShardHost const&) = delete;

  // close() ends all waiting calls with `why`; stop() ends everything else.
  void close(http::Problem why);
  boost::asio::awaitable<void> stop();

  // Applies a newer placement, whose spec differs at most in its clients. Problems: epoch_fenced; parameter_lost if
  // this worker becomes the owner but does not have the state.
  [[nodiscard]] std::optional<http::Problem> assign(api::ShardAssignment const& assignment);

  // Waits until the shard can be recovered from the owner's log. Returns at once without a log. Problems:
  // deadline_exceeded; unavailable if the log cannot be written.
  boost::asio::awaitable<std::optional<http::Problem>> until_logged(http::TimePoint deadline);

  // Removes the log of a shard that has been erased. Called after stop().
  boost::asio::awaitable<void> remove_log();

  // Applies a push at the owner. After a success every backup in step has the push, and the log, if there is one, too.
  // Problems: those of Shard, misdirected, non_finite, unavailable (also while is_suspended()); deadline_exceeded: the
  // push may still be applied, and the client repeats it.
  boost::asio::awaitable<http::Checked<api::PushAnswer>> push(Push push, http::TimePoint deadline);

  struct ReadConstraints {
    std::optional<std::uint64_t> min_version;
    std::optional<std::uint64_t> clock;
  };
  struct View {
    std::shared_ptr<tensors::Block const> values;
    std::uint64_t version = 0;
    std::uint32_t epoch = 0;
    bool is_unconfirmed = false;  // the owner is_suspended(), so another owner may have newer values
  };
  // Returns the values at the owner. Problems: misdirected, deadline_exceeded.
  boost::asio::awaitable<http::Checked<View>> view(ReadConstraints constraints, http::TimePoint deadline);

  // The same without waiting; nothing if the caller would have to wait.
  [[nodiscard]] std::optional<View> view_now() const;

  // Copies rows of a view like Shard::copy_rows. The memory of both spans outlives the call.
  boost::asio::awaitable<http::Checked<View>> copy_rows(ReadConstraints constraints,
                                                        std::span<std::uint64_t const> rows, std::span<std::byte> into,
                                                        http::TimePoint deadline);
  [[nodiscard]] std::uint64_t value_bytes() const { return shard_->value_bytes(); }

  // Applies a push from the owner at a backup. Problems: epoch_fenced, out_of_order for a gap, deadline_exceeded.
  boost::asio::awaitable<std::optional<http::Problem>> follow(LogEntry entry, std::uint32_t epoch,
                                                              http::TimePoint deadline);
  // Stores a piece of an image at a backup; end_image() makes the pieces take effect, complete() brings the backup into
  // step. Problems: epoch_fenced, unavailable, mismatch for an array or state that this shard does not have.
  boost::asio::awaitable<std::optional<http::Problem>> put_piece(ImagePiece piece,
                                                                 std::shared_ptr<tensors::Block const> content,
                                                                 std::uint32_t epoch);
  boost::asio::awaitable<std::optional<http::Problem>> end_image(std::uint64_t image, api::ShardState state,
                                                                 std::optional<std::uint64_t> history,
                                                                 std::uint32_t epoch);
  [[nodiscard]] std::optional<http::Problem> complete(std::uint64_t position, std::optional<std::uint64_t> history,
                                                      std::uint32_t epoch);

  // Returns the owner's image for a checkpoint such as "nightly/7": that of keep_image(), or a new one between two
  // pushes. In rounds: the state at the end of the last round. Problems: misdirected, deadline_exceeded, unavailable
  // without memory.
  boost::asio::awaitable<http::Checked<ShardImage>> image_for(std::string checkpoint, http::TimePoint deadline);

  // These bring all shards of a parameter to the same place among its pushes for a checkpoint. hold() stops the shard
  // between two pushes, at most until `until`, and returns its place. aim() lets it go on to a given place.
  // keep_image() waits for that place or the end of the hold, keeps an image, ends the hold, and returns the image's
  // place. Problems: misdirected; deadline_exceeded; out_of_order without a hold; those of image_for.
  boost::asio::awaitable<http::Checked<std::vector<api::ShardClient>>> hold(std::string checkpoint,
                                                                            http::TimePoint until);
  [[nodiscard]] std::optional<http::Problem> aim(std::string const& checkpoint,
                                                 std::vector<api::ShardClient> const& place);
  boost::asio::awaitable<http::Checked<std::vector<api::ShardClient>>> keep_image(std::string checkpoint);

  [[nodiscard]] ShardSpec const& spec() const { return spec_; }
  [[nodiscard]] bool keeps_log() const { return logging_ != nullptr; }
  // Returns the reason why the log cannot be written now; nothing if no failure is known, or without a log.
  [[nodiscard]] std::optional<http::Problem> log_failure() const;
  [[nodiscard]] Role role() const { return role_; }
  // Returns true for an owner that takes no pushes: the worker's lease is over by its own clock, or was over and the
  // coordinator has not confirmed the ownership since.
  [[nodiscard]] bool is_suspended() const;
  // Returns true for an owner, unless a backup has heard of a later epoch.
  [[nodiscard]] bool serves() const { return role_ == Role::owner && !is_fenced_; }
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  [[nodiscard]] api::ShardStatus status() const;
  [[nodiscard]] std::size_t backups_behind() const { return followers_.behind(); }    // backups not in step
  [[nodiscard]] std::optional<std::uint64_t> rows() const { return shard_->rows(); }  // see Shard::rows

 private:
  // A push that waits for its turn; its requester waits for the answer.
  struct Job {
    Push push;
    std::optional<std::uint64_t> position;  // for a push from the owner
    std::optional<std::uint64_t> history;   // for a push from the owner: the owner's history before it
    std::uint32_t epoch = 0;                // for a push from the owner: the epoch in which it was sent
    http::TimePoint begun = std::chrono::steady_clock::now();
    bool is_withdrawn = false;
    bool has_waited = false;
    std::optional<http::Checked<api::PushAnswer>> answer;
  };
  using JobPtr = std::shared_ptr<Job>;
  using FollowerPtr = Followers::Ptr;

  boost::asio::awaitable<void> work();
  boost::asio::awaitable<void> serve(JobPtr job);
  boost::asio::awaitable<bool> replicate(LogEntry entry);
  boost::asio::awaitable<std::optional<http::Problem>> apply(Push push, Result<Shard::Change> change);
  boost::asio::awaitable<std::optional<http::Problem>> settle_nonfinite(Push push);

  boost::asio::awaitable<std::optional<http::Problem>> refused(Push push);  // Shard::refuse, off this thread if long
  boost::asio::awaitable<Result<ShardImage>> take_image();
  boost::asio::awaitable<std::optional<http::Problem>> download(http::TimePoint deadline);
  [[nodiscard]] http::Problem heed(Error const& error);
  [[nodiscard]] http::Problem break_down(Error const& why);

  // For a checkpoint.
  struct Hold {
    std::string checkpoint;
    http::TimePoint until;
    std::optional<Window::Entries> place;  // pushes are applied up to this place; empty: none is applied
  };
  boost::asio::awaitable<http::Checked<ShardImage>> image(http::TimePoint deadline);
  boost::asio::awaitable<void> end_hold(std::string checkpoint);
  boost::asio::awaitable<void> forget_image(std::string checkpoint);
  [[nodiscard]] std::vector<api::ShardClient> place() const;
  [[nodiscard]] bool is_held_back(Push const& push) const;
  [[nodiscard]] bool has_reached_place() const;
  void let_go();

  // For an owner with a log.
  struct Logging;
  void begin_logging();
  void end_logging();
  boost::asio::awaitable<void> keep_log(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<bool> begin_generation(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<bool> write_base(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<void> replace_base(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<void> withdraw_generation(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<void> make_base(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<Status> append(std::shared_ptr<Logging> logging, std::vector<LogEntry> entries);
  bool fail_log(Logging& logging, Error const& why);
  [[nodiscard]] std::optional<http::Problem> why_not_logged(JobPtr const& job) const;
  void answer_durable();
  void log(LogEntry entry);
  void answer_when_durable(JobPtr const& job, api::PushAnswer const& answer);
  [[nodiscard]] bool log_is_behind() const;
  boost::asio::awaitable<void> look_after_followers();
  boost::asio::awaitable<void> fill(FollowerPtr follower);
  boost::asio::awaitable<Follower::Sent> catch_up(FollowerPtr follower);
  boost::asio::awaitable<void> pause(std::chrono::milliseconds duration);
  boost::asio::awaitable<void> until_done(JobPtr job, http::TimePoint deadline);

  [[nodiscard]] JobPtr next_job();
  [[nodiscard]] bool is_next_of_owner(Job& job);
  [[nodiscard]] http::Problem fall_out_of_step(std::string const& why);
  void enqueue(JobPtr const& job);
  void finish(Job& job, http::Checked<api::PushAnswer> answer);
  void set_followers(api::ShardAssignment const& assignment);
  void step_down();
  void heed_clients(std::vector<std::string> const& clients);
  [[nodiscard]] http::Problem misdirected() const;
  [[nodiscard]] bool is_unconfirmed() const;
  [[nodiscard]] http::Problem suspended() const;
  void heed_term(api::ShardAssignment const& assignment);
  [[nodiscard]] std::optional<http::Problem> not_following(std::uint32_t epoch);
  [[nodiscard]] std::string title() const;

  ShardTools const& tools_;
  ShardSpec const spec_;
  std::unique_ptr<Shard> shard_;
  Role role_ = Role::backup;
  std::uint32_t epoch_ = 0;
  std::uint64_t term_ = 0;  // term of the lease in which the coordinator has last confirmed the ownership
  std::string owner_;       // of the last placement, for people
  bool is_complete_ = false;
  bool has_image_ = false;          // backup: a whole image has arrived since the backup was last complete
  bool is_unused_ = !is_complete_;  // the shard has its initial content, and waits for an image
  std::optional<http::Problem> closed_;
  std::optional<http::Problem> broken_;  // the device has failed: the state is unknown until an image arrives
  std::uint64_t arriving_image_ = 0;     // 0: none
  std::uint64_t newest_image_ = 0;       // greatest image number of this epoch; older images were abandoned
  bool is_fenced_ = false;               // owner: a backup has heard of a later epoch
  History history_;
  bool is_working_ = false;        // on a push
  std::size_t images_wanted_ = 0;  // number of images for which pushes wait
  std::optional<Hold> hold_;
  std::map<std::string, ShardImage> images_;  // by checkpoint, until they are written
  std::list<JobPtr> queue_;
  Followers followers_;
  std::shared_ptr<Logging> logging_;
  http::Condition changed_;
  ShardOffload offload_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::parameters
