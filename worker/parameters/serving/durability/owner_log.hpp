// The push log that an owner keeps of its shard. Pushes are applied at once and answered when they are on the disk;
// pushes that arrive during a sync are written with the next one. An image of the shard replaces a long log, while
// pushes go on.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/runtime/task_group.hpp"
#include "worker/parameters/serving/copy/push_queue.hpp"
#include "worker/parameters/serving/copy/shard_copy.hpp"
#include "worker/parameters/serving/durability/disk_log.hpp"

namespace chorus::parameters {

// Used on the control thread. The objects that it refers to outlive its coroutines, which hold it.
class OwnerLog {
 public:
  // tasks: for bases that are written while pushes go on.
  OwnerLog(ShardTools const& tools, ShardCopy& copy, Tenure const& tenure, PushQueue& queue, http::TaskGroup& tasks);
  OwnerLog(OwnerLog const&) = delete;
  OwnerLog& operator=(OwnerLog const&) = delete;

  // Makes a base and writes pushes, until end().
  static boost::asio::awaitable<void> keep(std::shared_ptr<OwnerLog> log);
  // Refuses all unanswered pushes: it is not known whether they are on the disk.
  void end(http::Problem const& why);

  // Adds a push that was applied just now.
  void add(LogEntry entry);
  // Answers a push when all pushes applied until now are durable, or cannot become so. Also for a duplicate push,
  // because the first one may not be on the disk yet.
  void answer_when_durable(PushQueue::JobPtr const& job, api::PushAnswer const& answer);
  [[nodiscard]] bool is_behind() const;                      // pushes must wait
  [[nodiscard]] bool has_base() const { return has_base_; }  // the shard can be recovered from the log
  // Returns the reason why the log cannot be written now; nothing if no failure is known.
  [[nodiscard]] std::optional<http::Problem> const& failure() const { return failure_; }
  // Returns a problem for a push whose deadline has passed, if a slow disk call is the reason.
  [[nodiscard]] std::optional<http::Problem> why_not_durable(PushQueue::JobPtr const& job) const;

 private:
  struct Unanswered {
    std::uint64_t position;
    PushQueue::JobPtr job;
    api::PushAnswer answer;
  };

  static boost::asio::awaitable<void> replace_base(std::shared_ptr<OwnerLog> log);
  boost::asio::awaitable<void> make_base();
  boost::asio::awaitable<bool> begin_generation();
  boost::asio::awaitable<bool> write_base();
  boost::asio::awaitable<Status> append(std::vector<LogEntry> entries);
  [[nodiscard]] bool has_grown_long() const;
  [[nodiscard]] std::vector<LogEntry> take_queued();
  void answer_durable();
  void refuse_unanswered(http::Problem const& why);
  bool fail(Error const& why);
  void report(Error const& why) const;

  ShardTools const& tools_;
  ShardCopy& copy_;
  Tenure const& tenure_;
  PushQueue& queue_;
  http::TaskGroup& tasks_;
  DiskLog log_;
  std::vector<LogEntry> queued_;  // to be written
  std::uint64_t queued_bytes_ = 0;
  std::deque<Unanswered> unanswered_;        // in the order of their positions
  std::uint64_t durable_position_ = 0;       // pushes below it survive a crash
  std::shared_ptr<ShardImage const> image_;  // of the beginning of the generation, until it has been written
  std::uint64_t base_bytes_ = 0;
  http::TimePoint snapshot_not_before_{};
  bool has_base_ = false;                 // a complete base exists, and every push since is in the log or queued
  std::optional<http::Problem> failure_;  // why the last attempt has made no base
  bool is_ended_ = false;
  bool wants_image_ = false;
};

}  // namespace chorus::parameters
