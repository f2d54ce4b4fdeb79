// How a backup follows the owner of its shard: takes images, and applies the owner's pushes in their order.
#pragma once

#include <memory>
#include <optional>

#include "worker/parameters/log/push_log.hpp"
#include "worker/parameters/serving/copy/push_queue.hpp"
#include "worker/parameters/serving/copy/shard_copy.hpp"

namespace chorus::parameters {

// Used on the control thread. The objects that it refers to outlive it. Every call of the owner names its epoch.
// Problems of all calls: those of Tenure::why_not_following.
class Following {
 public:
  Following(ShardTools const& tools, ShardCopy& copy, Tenure& tenure, PushQueue& queue)
      : tools_(tools), copy_(copy), tenure_(tenure), queue_(queue), is_unused_(!tenure.is_complete()) {}

  // Applies a push from the owner. Problems: out_of_order for a gap, deadline_exceeded; those of Shard::refuse.
  boost::asio::awaitable<std::optional<http::Problem>> follow(LogEntry entry, std::uint32_t epoch,
                                                              http::TimePoint deadline);
  // Returns now if this push of the owner is the next one, otherwise answers it.
  [[nodiscard]] PushQueue::Turn turn(PushJob& job);

  // Stores a piece of an image; end_image() makes the pieces take effect, complete() brings the backup into step.
  // Problems: unavailable; out_of_order for another image than the last; mismatch for an array or state that this shard
  // does not have.
  boost::asio::awaitable<std::optional<http::Problem>> put_piece(ImagePiece piece,
                                                                 std::shared_ptr<tensors::Block const> content,
                                                                 std::uint32_t epoch);
  boost::asio::awaitable<std::optional<http::Problem>> end_image(std::uint64_t image, api::ShardState state,
                                                                 std::optional<std::uint64_t> history,
                                                                 std::uint32_t epoch);
  [[nodiscard]] std::optional<http::Problem> complete(std::uint64_t position, std::optional<std::uint64_t> history,
                                                      std::uint32_t epoch);

  // Image numbers begin anew with a newer placement.
  void begin_epoch() { newest_image_ = 0; }
  // The copy is no longer complete: it waits for an image.
  void want_image();
  // The same after the device has failed: its content is unknown.
  void lose_content();

 private:
  [[nodiscard]] http::Problem fall_out_of_step(std::string const& why);
  [[nodiscard]] http::Problem out_of_order(std::string const& why) const;

  ShardTools const& tools_;
  ShardCopy& copy_;
  Tenure& tenure_;
  PushQueue& queue_;
  bool has_image_ = false;            // a whole image has arrived since the backup was last complete
  bool is_unused_;                    // the shard has its initial content, and waits for an image
  std::uint64_t arriving_image_ = 0;  // 0: none
  std::uint64_t newest_image_ = 0;    // greatest image number of this epoch; older images were abandoned
};

}  // namespace chorus::parameters
