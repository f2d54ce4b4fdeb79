// A shard that is served: pushes come one after the other, readers wait for what they may see, backups are kept in
// step.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/condition.hpp"
#include "http/peer_client.hpp"
#include "http/task_group.hpp"
#include "worker/parameters/serving/follower.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {

// What happens to shards, for whoever counts. On the control thread; any of them may be empty.
struct ShardEvents {
  std::function<void(std::string_view kind, std::string_view result, double seconds)> pushed;
  std::function<void(std::uint64_t clocks)> read_behind;  // how far the slowest client is behind the reader
  std::function<void(std::string_view what)> waited;      // "pull" or "push"
  std::function<void(std::uint64_t elements)> nonfinite;
  std::function<void(std::uint64_t rows)> rows_created;  // in a shard that is owned here
  std::function<void(std::uint64_t records, std::uint64_t bytes, double seconds)> logged;  // with one sync
  std::function<void()> log_truncated;
  // The device on which it lay has failed: this worker does not have it any more.
  std::function<void(std::string const& parameter, std::uint32_t shard, std::string const& why)> lost;
  std::function<void(std::string const& shard, std::string const& why)> log_failed;
  // A backup does not answer. Whoever hears of it finds out whether it lives.
  std::function<void(std::string const& worker, std::string const& incarnation)> unreachable;
};

// What all hosts of a worker share; outlives them.
struct ShardTools {
  boost::asio::any_io_executor executor;  // of the control thread
  boost::asio::thread_pool& threads;      // for arithmetic on large shards
  http::PeerClient client;
  tensors::Pool& pool;
  ShardEvents events;
  std::uint64_t fill_bytes_per_second = 256 << 20;  // to a new backup
  // Logs of owners, where parameters ask for them.
  struct Logs {
    checkpoints::Files* files = nullptr;
    std::string root;                             // "": this worker keeps none
    boost::asio::thread_pool* threads = nullptr;  // for what waits for the disk
    std::uint64_t snapshot_bytes = 64 << 20;      // of pushes, at least, before a new base is written
  };
  Logs logs = {};
  devices::Gpus const* gpus = nullptr;  // null: no shard lies on one

  [[nodiscard]] ShardMemory memory() const { return {pool, gpus}; }
};

// On the control thread. Stopped before it is destroyed; held by std::shared_ptr by everything that awaits it.
class ShardHost : public std::enable_shared_from_this<ShardHost> {
 public:
  enum class Role { owner, backup };

  ShardHost(ShardTools const& tools, std::unique_ptr<Shard> shard, api::ShardAssignment const& assignment);
  ~ShardHost();
  ShardHost(ShardHost const&) = delete;
  ShardHost& operator=(ShardHost const&) = delete;

  // Ends what waits with `why`, then everything else.
  void close(http::Problem why);
  boost::asio::awaitable<void> stop();

  // A newer placement, of a spec that differs in nothing but its clients. Problems: epoch_fenced; parameter_lost if it
  // is to own what it does not have.
  [[nodiscard]] std::optional<http::Problem> assign(api::ShardAssignment const& assignment);

  // Of an owner that keeps a log: its log can be recovered from. Of others at once. Problem deadline_exceeded.
  boost::asio::awaitable<std::optional<http::Problem>> until_logged(http::TimePoint deadline);

  // When it has been stopped, and the shard is to be here no more.
  boost::asio::awaitable<void> remove_log();

  // Of an owner: when it returns without a problem, every backup that is in step has the push, and the log if there is
  // one. Problems: those of
  // Shard, misdirected, non_finite, unavailable, deadline_exceeded: the push may come to be applied nevertheless, and
  // is to be repeated.
  boost::asio::awaitable<http::Checked<api::PushAnswer>> push(Push push, http::TimePoint deadline);

  struct Wish {
    std::optional<std::uint64_t> min_version;
    std::optional<std::uint64_t> clock;
  };
  struct View {
    std::shared_ptr<tensors::Block const> values;
    std::uint64_t version = 0;
    std::uint32_t epoch = 0;
  };
  // Of an owner. Problems: misdirected, deadline_exceeded.
  boost::asio::awaitable<http::Checked<View>> view(Wish wish, http::TimePoint deadline);

  // The same without waiting; nothing where that cannot be.
  [[nodiscard]] std::optional<View> view_now() const;

  // Rows of a view, before anything else is awaited.
  void copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into) const {
    shard_->copy_rows(rows, into);
  }
  [[nodiscard]] std::uint64_t value_bytes() const { return shard_->value_bytes(); }

  // From the owner to a backup. Problems: epoch_fenced, out_of_order for a gap, deadline_exceeded.
  boost::asio::awaitable<std::optional<http::Problem>> follow(Push push, std::uint64_t position, std::uint32_t epoch,
                                                              http::TimePoint deadline);
  struct Piece {
    std::string array;
    std::uint64_t image = 0, offset = 0, bytes = 0;
  };
  // A piece of an image; all of them count once end_image() has been called. Problems: epoch_fenced, unavailable,
  // mismatch for what this shard does not have.
  [[nodiscard]] std::optional<http::Problem> put_piece(Piece const& piece, std::span<std::byte const> content,
                                                       std::uint32_t epoch);
  boost::asio::awaitable<std::optional<http::Problem>> end_image(std::uint64_t image, api::ShardState state,
                                                                 std::uint32_t epoch);
  [[nodiscard]] std::optional<http::Problem> complete(std::uint64_t position, std::uint32_t epoch);

  // Of an owner, for a checkpoint, "nightly/7": what keep_image() has kept for it, or as it is between two pushes. In
  // rounds: as it was at the end of the last one. Problems: misdirected, deadline_exceeded, unavailable without memory.
  boost::asio::awaitable<http::Checked<ShardImage>> image_for(std::string checkpoint, http::TimePoint deadline);

  // So that all shards of a parameter are written at the same place among its pushes: hold() stops each of them between
  // two pushes, until `until` at most, and gives where it stands. aim() lets it go on to a place, and keep_image(),
  // when it has come there or is held no more, remembers what it is, lets it go, and gives where it was. Problems:
  // misdirected; deadline_exceeded; out_of_order for what is not held; those of image_for.
  boost::asio::awaitable<http::Checked<std::vector<api::ShardClient>>> hold(std::string checkpoint,
                                                                            http::TimePoint until);
  [[nodiscard]] std::optional<http::Problem> aim(std::string const& checkpoint,
                                                 std::vector<api::ShardClient> const& place);
  boost::asio::awaitable<http::Checked<std::vector<api::ShardClient>>> keep_image(std::string checkpoint);

  [[nodiscard]] ShardSpec const& spec() const { return spec_; }
  [[nodiscard]] bool keeps_log() const { return logging_ != nullptr; }
  [[nodiscard]] Role role() const { return role_; }
  [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
  [[nodiscard]] bool is_complete() const { return is_complete_; }
  [[nodiscard]] api::ShardStatus status() const;
  [[nodiscard]] std::size_t backups_behind() const;                                   // that are not in step
  [[nodiscard]] std::optional<std::uint64_t> rows() const { return shard_->rows(); }  // see Shard::rows

 private:
  // A push that waits for its turn; its requester waits for the answer.
  struct Job {
    Push push;
    std::optional<std::uint64_t> position;  // of a push from the owner
    http::TimePoint begun = std::chrono::steady_clock::now();
    bool is_withdrawn = false;
    bool has_waited = false;
    std::optional<http::Checked<api::PushAnswer>> answer;
  };
  using JobPtr = std::shared_ptr<Job>;
  using FollowerPtr = std::shared_ptr<Follower>;

  boost::asio::awaitable<void> work();
  boost::asio::awaitable<void> serve(JobPtr job);
  boost::asio::awaitable<bool> replicate(LogEntry entry);
  boost::asio::awaitable<std::optional<http::Problem>> apply(Push push);
  boost::asio::awaitable<Status> compute(Shard::Change* change);

  // Of a shard on a GPU: one thing at a time waits for the device, on another thread.
  class DeviceTurn;
  boost::asio::awaitable<Result<ShardImage>> take_image();
  boost::asio::awaitable<std::optional<http::Problem>> download(http::TimePoint deadline);
  [[nodiscard]] http::Problem heed(Error const& error);
  [[nodiscard]] http::Problem break_down(Error const& why);

  // For a checkpoint.
  struct Hold {
    std::string checkpoint;
    http::TimePoint until;
    std::optional<Window::Entries> place;  // to which pushes go on; none: nothing is applied
  };
  boost::asio::awaitable<http::Checked<ShardImage>> image(http::TimePoint deadline);
  boost::asio::awaitable<void> end_hold(std::string checkpoint);
  boost::asio::awaitable<void> forget_image(std::string checkpoint);
  [[nodiscard]] std::vector<api::ShardClient> place() const;
  [[nodiscard]] bool is_held_back(Push const& push) const;
  [[nodiscard]] bool has_reached_place() const;
  void let_go();

  // Of an owner that keeps a log.
  struct Logging;
  void begin_logging();
  void end_logging();
  boost::asio::awaitable<void> keep_log(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<bool> begin_generation(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<bool> write_base(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<void> replace_base(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<void> make_base(std::shared_ptr<Logging> logging);
  boost::asio::awaitable<Status> append(std::shared_ptr<Logging> logging, std::vector<LogEntry> entries);
  bool fail_log(Logging& logging, Error const& why);
  void answer_durable();
  void log(LogEntry entry);
  void answer_when_durable(JobPtr const& job, api::PushAnswer const& answer);
  [[nodiscard]] bool log_is_behind() const;
  boost::asio::awaitable<void> look_after_followers();
  boost::asio::awaitable<void> fill(FollowerPtr follower);
  boost::asio::awaitable<void> pause(std::chrono::milliseconds duration);
  boost::asio::awaitable<void> until_done(JobPtr job, http::TimePoint deadline);

  [[nodiscard]] JobPtr next_job();
  void enqueue(JobPtr const& job);
  void finish(Job& job, http::Checked<api::PushAnswer> answer);
  [[nodiscard]] std::optional<http::Problem> settle_nonfinite(Push const& push);
  [[nodiscard]] bool backlog_is_long() const;
  void set_followers(api::ShardAssignment const& assignment);
  void step_down();
  void heed_clients(std::vector<std::string> const& clients);
  [[nodiscard]] http::Problem misdirected() const;
  [[nodiscard]] std::optional<http::Problem> not_following(std::uint32_t epoch);
  [[nodiscard]] std::string title() const;

  ShardTools const& tools_;
  ShardSpec const spec_;
  std::unique_ptr<Shard> shard_;
  Role role_ = Role::backup;
  std::uint32_t epoch_ = 0;
  std::string owner_;  // as the last placement said, for people
  bool is_complete_ = false;
  bool has_image_ = false;  // of a backup: a whole one has come since it was complete last
  std::optional<http::Problem> closed_;
  std::optional<http::Problem> broken_;  // its device has failed: nobody knows what the shard has, until an image comes
  bool uses_device_ = false;
  std::uint64_t arriving_image_ = 0;  // 0: none
  bool is_writing_ = false;           // the values, in place
  bool is_working_ = false;           // on a push
  std::size_t images_wanted_ = 0;     // for which pushes wait
  std::optional<Hold> hold_;
  std::map<std::string, ShardImage> images_;  // by checkpoint, until they are written
  std::list<JobPtr> queue_;
  std::list<FollowerPtr> followers_;
  std::shared_ptr<Logging> logging_;
  http::Condition changed_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::parameters
