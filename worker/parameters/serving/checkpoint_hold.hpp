// Brings all shards of a parameter to the same place among its pushes for a checkpoint. All stop between two pushes,
// report their places, and go on to the place of the one that is farthest. There each keeps an image.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/task_group.hpp"
#include "worker/parameters/serving/copy/shard_copy.hpp"

namespace chorus::parameters {

// The hold and the images of one owner. A checkpoint is named like "nightly/7". Used on the control thread. The objects
// that it refers to outlive it; `tasks` is joined before. Problems of all coroutines: those of Tenure::why_not_serving;
// deadline_exceeded.
class CheckpointHold {
 public:
  using Place = std::vector<api::ShardClient>;  // the next push of each client

  CheckpointHold(ShardCopy& copy, Tenure const& tenure, http::TaskGroup& tasks)
      : copy_(copy), tenure_(tenure), tasks_(tasks) {}

  // Stops the shard between two pushes, at most until `until`, and returns its place.
  boost::asio::awaitable<http::Checked<Place>> hold(std::string checkpoint, http::TimePoint until);
  // Lets the shard go on to a given place. Problem: out_of_order without a hold.
  [[nodiscard]] std::optional<http::Problem> aim(std::string const& checkpoint, Place const& place);
  // Waits for that place or the end of the hold, keeps an image, ends the hold, and returns the image's place. Problem:
  // unavailable without memory.
  boost::asio::awaitable<http::Checked<Place>> keep_image(std::string checkpoint);
  // Returns the image of keep_image(), or a new one between two pushes. In rounds: the state at the end of the last
  // round. Problem: unavailable without memory.
  boost::asio::awaitable<http::Checked<ShardImage>> image_for(std::string checkpoint, http::TimePoint deadline);

  [[nodiscard]] bool holds_back(Push const& push) const;
  // Ends the hold.
  void let_go();

 private:
  struct Hold {
    std::string checkpoint;
    http::TimePoint until;
    std::optional<Window::Entries> place;  // pushes are applied up to this place; empty: none is applied
  };
  [[nodiscard]] bool is_for(std::string const& checkpoint) const { return hold_ && hold_->checkpoint == checkpoint; }
  [[nodiscard]] Place place() const;
  [[nodiscard]] bool has_reached_place() const;
  boost::asio::awaitable<http::Checked<ShardImage>> image(http::TimePoint deadline);
  boost::asio::awaitable<void> end_hold(std::string checkpoint);
  boost::asio::awaitable<void> forget_image(std::string checkpoint);

  ShardCopy& copy_;
  Tenure const& tenure_;
  http::TaskGroup& tasks_;
  std::optional<Hold> hold_;
  std::map<std::string, ShardImage> images_;  // by checkpoint, until they are written
};

}  // namespace chorus::parameters
