// This worker's copy of a shard: the shard, the history of its pushes, and the time between two pushes, in which images
// are taken.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/runtime/condition.hpp"
#include "worker/parameters/serving/copy/history.hpp"
#include "worker/parameters/serving/copy/shard_offload.hpp"
#include "worker/parameters/serving/copy/shard_tools.hpp"
#include "worker/parameters/serving/copy/tenure.hpp"

namespace chorus::parameters {

// Used on the control thread. The objects that it refers to outlive it.
class ShardCopy {
 public:
  using Lost = std::function<void(std::string const& why)>;

  // changed: notified when a push, an image or long work has ended. lost: called when the device has failed.
  ShardCopy(ShardTools const& tools, std::unique_ptr<Shard> shard, Tenure const& tenure, http::Condition& changed,
            Lost lost);
  ~ShardCopy();
  ShardCopy(ShardCopy const&) = delete;
  ShardCopy& operator=(ShardCopy const&) = delete;

  [[nodiscard]] ShardSpec const& spec() const { return spec_; }
  [[nodiscard]] Shard const& shard() const { return *shard_; }  // replace() destroys it
  [[nodiscard]] History& history() { return history_; }
  [[nodiscard]] ShardOffload& offload() { return offload_; }
  [[nodiscard]] http::Condition& changed() { return changed_; }

  // Shard::refuse, on another thread if it takes long.
  boost::asio::awaitable<std::optional<http::Problem>> refuse(Push push);
  // Applies a push. `change` was prepared just before, without a wait in between, or is an error: then it is prepared
  // here. Problems: those of break_down.
  boost::asio::awaitable<std::optional<http::Problem>> apply(Push push, Result<Shard::Change> change);
  // Called between two pushes. Errors: those of Shard::image.
  boost::asio::awaitable<Result<ShardImage>> image();
  // Replaces the shard while nothing uses it.
  void replace(std::unique_ptr<Shard> fresh);

  // While one exists, no push begins. Also ends if its coroutine is cancelled.
  class Pause {
   public:
    explicit Pause(ShardCopy& copy) : copy_(copy) { ++copy_.pauses_; }
    ~Pause() {
      --copy_.pauses_;
      copy_.changed_.notify_all();
    }
    Pause(Pause const&) = delete;
    Pause& operator=(Pause const&) = delete;

   private:
    ShardCopy& copy_;
  };
  [[nodiscard]] bool is_paused() const { return pauses_ > 0; }
  // Pushes and readers that pause them take turns: while a push waits for the end of a pause, no reader begins one.
  [[nodiscard]] bool push_waits() const { return push_waits_; }
  void set_push_waits(bool waits);
  [[nodiscard]] bool is_working() const { return is_working_; }  // on a push
  [[nodiscard]] bool is_busy() const { return is_working_ || offload_.is_lent(); }
  void begin_work() { is_working_ = true; }
  void end_work();
  // Waits at the owner until no push is being applied. Problems: those of Tenure::why_not_serving; deadline_exceeded.
  boost::asio::awaitable<std::optional<http::Problem>> until_between_pushes(http::TimePoint deadline);

  // Set when the device has failed: the state is unknown until an image has arrived.
  [[nodiscard]] std::optional<http::Problem> const& broken() const { return broken_; }
  void mend() { broken_.reset(); }
  // Handles an error of a call that only reads the device: the shard is lost only if the device is.
  [[nodiscard]] http::Problem heed(Error const& error);

  [[nodiscard]] http::Problem is_applying(http::ProblemCode code) const;

 private:
  [[nodiscard]] http::Problem break_down(Error const& why);

  ShardTools const& tools_;
  Tenure const& tenure_;
  http::Condition& changed_;
  Lost const lost_;
  ShardSpec const spec_;
  std::unique_ptr<Shard> shard_;
  ShardOffload offload_;
  History history_;
  bool is_working_ = false;
  std::size_t pauses_ = 0;
  bool push_waits_ = false;
  std::optional<http::Problem> broken_;
};

}  // namespace chorus::parameters
