// Serves one shard: applies pushes one after the other, and has the parts that read it, hold it for checkpoints, log it
// and keep its copies in step.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "worker/parameters/serving/checkpoint_hold.hpp"
#include "worker/parameters/serving/copy/push_queue.hpp"
#include "worker/parameters/serving/copy/shard_copy.hpp"
#include "worker/parameters/serving/copy/shard_tools.hpp"
#include "worker/parameters/serving/copy/tenure.hpp"
#include "worker/parameters/serving/durability/owner_log.hpp"
#include "worker/parameters/serving/replication/followers.hpp"
#include "worker/parameters/serving/replication/following.hpp"
#include "worker/parameters/serving/shard_reader.hpp"

namespace chorus::parameters {

// Used on the control thread. Call stop() before it is destroyed. Every coroutine that awaits a call holds it by
// std::shared_ptr.
class ShardHost : public std::enable_shared_from_this<ShardHost> {
 public:
  using Place = CheckpointHold::Place;
  using Role = Tenure::Role;
  using View = ShardView;
  using ReadConstraints = parameters::ReadConstraints;

  ShardHost(ShardTools const& tools, std::unique_ptr<Shard> shard, api::ShardAssignment const& assignment);
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

  // See ShardReader.
  boost::asio::awaitable<http::Checked<View>> view(ReadConstraints constraints, http::TimePoint deadline) {
    return held(reader_.view(constraints, deadline));
  }
  [[nodiscard]] std::optional<View> view_now() const { return reader_.view_now(); }
  boost::asio::awaitable<http::Checked<View>> copy_rows(ReadConstraints constraints,
                                                        std::span<std::uint64_t const> rows, std::span<std::byte> into,
                                                        http::TimePoint deadline) {
    return held(reader_.copy_rows(constraints, rows, into, deadline));
  }

  // See Following.
  boost::asio::awaitable<std::optional<http::Problem>> follow(LogEntry entry, std::uint32_t epoch,
                                                              http::TimePoint deadline) {
    return held(following_.follow(std::move(entry), epoch, deadline));
  }
  boost::asio::awaitable<std::optional<http::Problem>> put_piece(ImagePiece piece,
                                                                 std::shared_ptr<tensors::Block const> content,
                                                                 std::uint32_t epoch) {
    return held(following_.put_piece(std::move(piece), std::move(content), epoch));
  }
  boost::asio::awaitable<std::optional<http::Problem>> end_image(std::uint64_t image, api::ShardState state,
                                                                 std::optional<std::uint64_t> history,
                                                                 std::uint32_t epoch) {
    return held(following_.end_image(image, std::move(state), history, epoch));
  }
  [[nodiscard]] std::optional<http::Problem> complete(std::uint64_t position, std::optional<std::uint64_t> history,
                                                      std::uint32_t epoch) {
    return following_.complete(position, history, epoch);
  }

  // See CheckpointHold.
  boost::asio::awaitable<http::Checked<ShardImage>> image_for(std::string checkpoint, http::TimePoint deadline) {
    return held(hold_.image_for(std::move(checkpoint), deadline));
  }
  boost::asio::awaitable<http::Checked<Place>> hold(std::string checkpoint, http::TimePoint until) {
    return held(hold_.hold(std::move(checkpoint), until));
  }
  [[nodiscard]] std::optional<http::Problem> aim(std::string const& checkpoint, Place const& place) {
    return hold_.aim(checkpoint, place);
  }
  boost::asio::awaitable<http::Checked<Place>> keep_image(std::string checkpoint) {
    return held(hold_.keep_image(std::move(checkpoint)));
  }

  [[nodiscard]] ShardSpec const& spec() const { return copy_.spec(); }
  [[nodiscard]] std::uint64_t value_bytes() const { return copy_.shard().value_bytes(); }
  [[nodiscard]] std::optional<std::uint64_t> rows() const { return copy_.shard().rows(); }  // see Shard::rows
  [[nodiscard]] bool keeps_log() const { return log_ != nullptr; }
  // Returns the reason why the log cannot be written now; nothing if no failure is known, or without a log.
  [[nodiscard]] std::optional<http::Problem> log_failure() const;
  // See Tenure.
  [[nodiscard]] Role role() const { return tenure_.role(); }
  [[nodiscard]] std::uint32_t epoch() const { return tenure_.epoch(); }
  [[nodiscard]] bool serves() const { return tenure_.serves(); }
  [[nodiscard]] bool is_suspended() const { return tenure_.is_suspended(); }
  [[nodiscard]] bool is_complete() const { return tenure_.is_complete(); }
  [[nodiscard]] api::ShardStatus status() const;
  [[nodiscard]] std::size_t backups_behind() const { return followers_.behind(); }

 private:
  using JobPtr = PushQueue::JobPtr;

  // Holds this host until the call of a part has ended.
  template <class T>
  boost::asio::awaitable<T> held(boost::asio::awaitable<T> call) {
    auto const self = shared_from_this();
    co_return co_await std::move(call);
  }

  boost::asio::awaitable<void> work();
  boost::asio::awaitable<void> serve(JobPtr job);
  boost::asio::awaitable<std::optional<http::Problem>> settle_nonfinite(Push push);
  [[nodiscard]] PushQueue::Turn turn(JobPtr const& job);
  [[nodiscard]] bool must_wait() const;
  void acknowledge(JobPtr const& job, bool is_duplicate);

  void begin_logging();
  void heed_clients(std::vector<std::string> const& clients);
  void step_down();
  void heed_loss(std::string const& why);

  ShardTools const& tools_;
  http::Condition changed_;  // of anything that a coroutine of this host waits for
  Tenure tenure_;
  ShardCopy copy_;
  PushQueue queue_;
  http::TaskGroup tasks_;
  Followers followers_;
  Following following_;
  ShardReader reader_;
  CheckpointHold hold_;
  std::shared_ptr<OwnerLog> log_;  // of the present ownership; null: no log is kept
};

}  // namespace chorus::parameters
