// The sending end of a link to one peer: runs' messages go out, grants and verdicts come back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/engine/connection.hpp"
#include "worker/engine/once_queue.hpp"
#include "worker/engine/send_channel.hpp"

namespace chorus::engine {

// Exists from the moment its link is dialed; channels may be added at once. Frames of several runs take turns.
class Outlet final : public Connection {
 public:
  Outlet(Engine& engine, Identity peer, std::string url) : Connection(engine, std::move(peer)), url_(std::move(url)) {}

  [[nodiscard]] std::string const& url() const { return url_; }

  void add(SendChannel& channel);
  // The run has ended; none of its memory is used any more.
  void remove(SendChannel& channel);
  // The channel has frames.
  void schedule(SendChannel& channel);

  bool next_frame(links::OutFrame& frame) override;
  void frame_sent(links::FrameHeader const& header) override;
  Status frame_arrives(links::FrameHeader const& header) override;
  void frame_is_corrupt(Error const& why) override;
  std::span<std::byte> payload_space() override { return collecting_space(); }
  Status payload_arrived(std::size_t bytes) override;
  void payload_at(std::span<std::byte const> payload) override;
  void payload_withdrawn() override {}  // verdicts never are

 private:
  void lost(Error const& why) override;
  [[nodiscard]] SendChannel* find(std::uint64_t run);
  Status verdict_arrived();

  std::string const url_;
  std::vector<SendChannel*> channels_;
  OnceQueue<SendChannel> scheduled_;
  std::size_t in_flight_ = 0;  // data frames that the link has
  std::chrono::steady_clock::time_point busy_since_;
};

}  // namespace chorus::engine
