// The sending end of a link to one peer: runs' messages go out, grants and verdicts come back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/connection.hpp"
#include "worker/engine/gpu/device_work.hpp"
#include "worker/engine/gpu/loan.hpp"
#include "worker/engine/once_queue.hpp"
#include "worker/engine/send_channel.hpp"

namespace chorus::engine {

// Exists from the moment its link is dialed; channels may be added at once. Frames of several runs take turns.
class Outlet final : public Connection {
 public:
  Outlet(Engine& engine, Identity peer, std::string url) : Connection(engine, std::move(peer)), url_(std::move(url)) {}

  [[nodiscard]] std::string const& url() const { return url_; }
  // On a connection that the peer has dialed; without a URL.
  [[nodiscard]] bool is_accepted() const { return url_.empty(); }

  // What the open of a run on this GPU is to lend: nothing unless the link allows it, and the peer has not refused it
  // lately.
  [[nodiscard]] std::optional<links::Lend> lend(DeviceWork& device);

  void add(SendChannel& channel);
  // The run has ended; none of its memory is used any more.
  void remove(SendChannel& channel);
  // Both frames now, if nothing is in their way. Of what is taken in part the channel is to be added, with its data
  // frame in flight; what is taken whole was sent().
  [[nodiscard]] links::Taken send(links::Parcel const& parcel, std::chrono::steady_clock::time_point began);
  void sent(links::Parcel const& parcel, std::chrono::steady_clock::duration took);
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
  Status borrow_arrived();
  Status read_arrived(links::FrameHeader const& header);
  Status room_arrived();
  Status returned_arrived(links::FrameHeader const& header);
  // A word about a run that has no channel here.
  [[nodiscard]] Status belated(links::FrameHeader const& header) const;

  std::string const url_;
  std::vector<SendChannel*> channels_;
  OnceQueue<SendChannel> scheduled_;
  std::size_t in_flight_ = 0;  // frames of messages that the link has
  std::chrono::steady_clock::time_point busy_since_;
  std::vector<std::shared_ptr<Loan>> loans_;  // of runs that have ended
  struct Unwanted {
    devices::GpuUnit const* unit = nullptr;
    std::chrono::steady_clock::time_point until;
  };
  std::vector<Unwanted> unwanted_;  // whose memory the peer could not map
};

}  // namespace chorus::engine
