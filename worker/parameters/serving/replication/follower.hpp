// A backup at its owner. First the owner sends an image of the shard and the pushes since then, while it goes on
// applying pushes. Then the backup is in step: no push is acknowledged before the backup has it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/runtime/condition.hpp"
#include "http/api/parameters/parameters.hpp"
#include "http/client/peer_client.hpp"
#include "worker/parameters/log/push_log.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {

// Address and epoch for the pushes to a backup.
struct FollowerAddress {
  std::string path;  // of the shard at the backup: "http://.../v1/parameters/w/shards/0"
  std::uint32_t epoch = 0;
};

// Used on the control thread. The client and this object outlive its coroutines.
class Follower {
 public:
  enum class Stage { unfit, wants_image, filling, wants_step, in_step };
  enum class Sent {
    taken,
    refused,  // the backup lacks the state before the push
    unreachable,
    fenced,  // the backup has seen a newer epoch, so the sender is no longer the owner
  };

  Follower(http::PeerClient client, api::ShardPeer peer, FollowerAddress address, Stage first)
      : stage(first), client_(client), peer_(std::move(peer)), address_(std::move(address)) {}
  Follower(Follower const&) = delete;
  Follower& operator=(Follower const&) = delete;

  [[nodiscard]] api::ShardPeer const& peer() const { return peer_; }
  void set_epoch(std::uint32_t epoch) { address_.epoch = epoch; }

  // Sends a push. A push that is sent again takes effect once.
  boost::asio::awaitable<Sent> send(LogEntry entry, http::TimePoint deadline);
  // Sends an image in pieces, with at most bytes_per_second.
  boost::asio::awaitable<Sent> send_image(std::shared_ptr<ShardImage const> image, std::uint64_t bytes_per_second);
  // Tells the backup that it is in step at this position, with this history.
  boost::asio::awaitable<Sent> complete(std::uint64_t position, std::optional<std::uint64_t> history,
                                        http::TimePoint deadline);

  Stage stage;
  std::optional<std::uint64_t> sent_position;  // of the last push that it took in step
  std::deque<LogEntry> backlog;                // pushes since the image that were not sent yet
  std::size_t backlog_limit = 0;               // while it is filled, pushes wait if the backlog has this length
  std::shared_ptr<ShardImage const> image;     // to be sent
  bool is_dropped = false;                     // by a newer placement
  http::TimePoint may_refuse_until{};          // until then it may not know its new owner

 private:
  boost::asio::awaitable<Sent> call(http::Call call, http::TimePoint deadline);

  http::PeerClient client_;
  api::ShardPeer const peer_;
  FollowerAddress address_;
};

}  // namespace chorus::parameters
