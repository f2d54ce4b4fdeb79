// A backup as its owner sees it: first it is given an image of the shard and what was pushed since, while the owner
// goes on; then it is in step, and no push is acknowledged before it has it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "http/api/parameters.hpp"
#include "http/condition.hpp"
#include "http/peer_client.hpp"
#include "worker/parameters/log/push_log.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {

// Where the pushes of a shard go, and under which epoch.
struct FollowerAddress {
  std::string path;  // of the shard at the backup: "http://.../v1/parameters/w/shards/0"
  std::uint32_t epoch = 0;
};

// On the control thread. The client outlives its coroutines; so does it itself.
class Follower {
 public:
  enum class Stage { unfit, wants_image, filling, wants_step, in_step };
  enum class Sent {
    taken,
    refused,  // not now: it has lost what it had, or never got it
    unreachable,
    fenced,  // it has seen a newer epoch: whoever sends is no owner any more
  };

  Follower(http::PeerClient client, api::ShardPeer peer, FollowerAddress address, Stage first)
      : stage(first), client_(client), peer_(std::move(peer)), address_(std::move(address)) {}
  Follower(Follower const&) = delete;
  Follower& operator=(Follower const&) = delete;

  [[nodiscard]] api::ShardPeer const& peer() const { return peer_; }
  void set_epoch(std::uint32_t epoch) { address_.epoch = epoch; }

  // What is sent repeatedly is taken once.
  boost::asio::awaitable<Sent> send(LogEntry entry, http::TimePoint deadline);
  // In pieces, at most bytes_per_second of them.
  boost::asio::awaitable<Sent> send_image(std::shared_ptr<ShardImage const> image, std::uint64_t bytes_per_second);
  // Says that it is in step at this position.
  boost::asio::awaitable<Sent> complete(std::uint64_t position, http::TimePoint deadline);

  Stage stage;
  std::optional<std::uint64_t> sent_position;  // of the last push that it took in step
  std::deque<LogEntry> backlog;                // since the image, not sent yet
  std::shared_ptr<ShardImage const> image;     // to be sent
  bool is_dropped = false;                     // by a newer placement
  http::TimePoint may_refuse_until{};          // it may not have heard yet that it follows somebody else

 private:
  boost::asio::awaitable<Sent> call(http::Call call, http::TimePoint deadline);

  http::PeerClient client_;
  api::ShardPeer const peer_;
  FollowerAddress address_;
};

}  // namespace chorus::parameters
