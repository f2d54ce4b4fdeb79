// The work of one run on its GPU: copies in, reductions and copies out, each tracked until it is done.
//
// The data thread queues work and polls how far the device has come; it never waits for the device.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/engine/gpu/gpu_workspace.hpp"
#include "worker/engine/gpu/pinned_area.hpp"
#include "worker/engine/gpu/staging.hpp"
#include "worker/engine/program/run_spec.hpp"
#include "worker/engine/trace/clock.hpp"
#include "worker/links/frames/lending.hpp"

namespace chorus::engine {

// Memory of a peer's GPU that this GPU reads and, if the peer allows it, writes.
using Borrowed = std::shared_ptr<devices::BorrowedArena const>;

// A part of a message, or of a local instruction, that the device works on.
struct DevicePiece {
  std::uint32_t number = 0;  // of the message or instruction
  std::uint64_t bytes = 0;
  std::uint32_t block = 0;  // of the channel, if `frees_block`
  bool frees_block = false;
};

// Notified when a piece is done. Outlives the work.
class DeviceClient {
 public:
  virtual void device_did(DevicePiece const& piece) = 0;

 protected:
  ~DeviceClient() = default;
};

// Sends completed results on: the reduction also writes them to a peer's memory in the same pass, if there is room.
// Outlives the work.
class DeviceSharer : public DeviceClient {
 public:
  struct Share {
    std::byte* place = nullptr;
    std::uint32_t number = 0;  // of the piece that device_did() will report
  };
  // The place for these bytes if they are sent next; empty if they are not, or if there is no room yet.
  [[nodiscard]] virtual std::optional<Share> shares(std::span<std::byte const> result) = 0;

 protected:
  ~DeviceSharer() = default;
};

// Used on the data thread only. After an error no more work is queued, and no client is notified.
class DeviceWork final : private Sharers {
 public:
  // Reserves all that the run needs: a session, device memory and, unless messages `may_lie_in_place`, pinned memory;
  // otherwise that is reserved when the first peer needs frames. The spec is checked and has a GPU; spec and clock
  // outlive the work. Errors: GpuErrc, with what the run needs and what limits it.
  [[nodiscard]] static Result<std::unique_ptr<DeviceWork>> begin(RunSpec const& spec, std::uint64_t eager_bytes,
                                                                 bool may_lie_in_place, Clock& clock);
  ~DeviceWork();
  DeviceWork(DeviceWork const&) = delete;
  DeviceWork& operator=(DeviceWork const&) = delete;

  // The blocks of the program's n-th channel. The first call reserves pinned memory for all channels that need blocks;
  // it never grows. Null: reserving has failed, which is the error of this work.
  [[nodiscard]] ChannelStaging const* stage(std::uint32_t channel);
  [[nodiscard]] std::uint64_t block_bytes() const { return staging_->block_bytes; }  // after the first stage()
  // The messages that this channel sends (lends) or receives (borrows) need no blocks.
  void lends(std::uint32_t channel) { messages_[channel].sends.clear(); }
  void borrows(std::uint32_t channel, plan::Rank peer, Borrowed arena);
  // The peer's memory that was borrowed; empty if there is none.
  [[nodiscard]] std::span<std::byte> borrowed_of(plan::Rank peer) const;
  // The messages that this channel receives are written by the peer, and need no blocks.
  void is_written(std::uint32_t channel) { messages_[channel].receives.clear(); }

  // True if the memory of the run's messages is one arena, which can be lent.
  [[nodiscard]] bool lies_in_arena() const;
  [[nodiscard]] Result<links::Lend> lend(std::uint64_t proof);
  [[nodiscard]] devices::GpuUnit& unit() const { return unit_; }

  [[nodiscard]] std::span<std::byte> pinned(std::uint64_t offset, std::uint64_t limit) const {
    return pinned_.at(offset, limit);
  }

  // Queue work on the next bytes of instruction i. receive() takes them from this offset of the pinned memory, send()
  // puts them there. The client is notified of the piece when they are done.
  void receive(std::uint32_t i, std::uint64_t offset, DevicePiece const& piece, DeviceClient& client);
  void send(std::uint32_t i, std::uint64_t offset, DevicePiece const& piece, DeviceClient& client);
  // receive() from a peer's memory, on the device.
  void read(std::uint32_t i, std::byte const* from, DevicePiece const& piece, DeviceClient& client);
  // Asks this sharer about the results of read() from now on.
  void share_with(DeviceSharer& sharer) { sharers_.push_back(&sharer); }
  // The next bytes that instruction i sends, at most `limit`.
  [[nodiscard]] std::span<std::byte const> next_source(std::uint32_t i, std::uint64_t limit) const {
    return workspace_.source(i, limit);
  }
  // Skips bytes that instruction i sends.
  void was_shared(std::uint32_t i, std::uint64_t bytes) { workspace_.skip_source(i, bytes); }
  // send() to a peer's memory, on the device.
  void write(std::uint32_t i, std::byte* to, DevicePiece const& piece, DeviceClient& client);
  // Place of the next bytes that instruction i sends, at most `limit`, for a peer to read; skips them.
  [[nodiscard]] links::Place show(std::uint32_t i, std::uint64_t limit);
  // Place of the next bytes that instruction i receives unchanged, at most `limit`, for a peer to write; skips them.
  [[nodiscard]] links::Place room(std::uint32_t i, std::uint64_t limit);
  [[nodiscard]] bool receives_as_it_is(std::uint32_t i) const { return workspace_.receives_as_it_is(i); }
  // receive() for a copy or reduce.
  void work(std::uint32_t i, DevicePiece const& piece, DeviceClient& client);

  // Notifies the clients of completed pieces. True if there were any, or an error.
  bool poll();
  // True if there is something to poll for: work, or an error, which may come between two polls.
  [[nodiscard]] bool is_at_work() const { return pieces_ != 0 || error_; }
  [[nodiscard]] std::optional<Error> const& error() const { return error_; }
  // Time since which the device has had work and completed none of it.
  [[nodiscard]] Clock::TimePoint still_since() const { return still_since_; }
  [[nodiscard]] std::string device() const;  // "cuda:0"

  // True if the device has nothing left of this run, which queues no more. To be polled until true.
  [[nodiscard]] bool rests();
  // The device has not come to rest in time and counts as lost. Nothing is freed before it rests.
  void give_up();

  struct Report {
    devices::GpuUse use;
    std::vector<devices::GpuSpan> spans;  // in time from `started` on
  };
  // Reports the work that was done.
  [[nodiscard]] Report report(Clock::TimePoint started);

 private:
  struct Pending {
    devices::Mark mark;
    DevicePiece piece;
    DeviceClient* client = nullptr;
  };
  // Pending pieces of a lane, first in first out, in a ring that grows rarely.
  class Queue {
   public:
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] Pending const& front() const { return ring_[first_]; }
    void push(Pending const& pending);
    void pop();

   private:
    std::vector<Pending> ring_;
    std::size_t first_ = 0;
    std::size_t size_ = 0;
  };

  DeviceWork(RunSpec const& spec, std::uint64_t eager_bytes, Clock& clock);
  [[nodiscard]] std::size_t places_for(std::span<std::byte const> result, std::span<std::byte*> places) override;
  [[nodiscard]] Status reserve(bool may_lie_in_place);
  [[nodiscard]] Status take_blocks();
  [[nodiscard]] Status take_blocks(Staging const& staging);
  [[nodiscard]] Status queue_receive(std::uint32_t i, std::uint64_t offset, std::uint64_t bytes, devices::Mark& mark);
  [[nodiscard]] links::Place place_of(std::span<std::byte const> bytes) const;
  [[nodiscard]] Status queue_send(std::uint32_t i, std::uint64_t offset, std::uint64_t bytes);
  // Returns the mark after which the piece is done.
  devices::Mark follow_up(Status const& queued, devices::Mark mark, DevicePiece const& piece, DeviceClient& client);
  void began();
  void failed(Error const& why);
  Queue& of(devices::Lane lane) { return pending_[static_cast<std::size_t>(lane)]; }

  devices::GpuUnit& unit_;
  Clock& clock_;
  plan::Program const& program_;
  std::span<std::byte const> const input_, output_;
  std::uint64_t const eager_bytes_;
  GpuWorkspace workspace_;
  std::vector<ChannelMessages> messages_;  // per channel, only those that need blocks
  std::optional<Staging> staging_;
  PinnedArea pinned_;
  std::shared_ptr<devices::GpuMemory> memory_;  // scratch; null if none is needed
  std::shared_ptr<devices::GpuMemory> twin_;    // copy of received pinned memory; null if none is needed
  struct OfPeer {
    plan::Rank peer = 0;
    Borrowed arena;
  };
  std::vector<OfPeer> borrowed_;
  std::byte const* arena_begin_ = nullptr;
  std::vector<DeviceSharer*> sharers_;
  struct Shared {
    DeviceSharer* sharer = nullptr;
    DevicePiece piece;
  };
  std::vector<Shared> shared_;  // by the pass that is being queued
  std::uint64_t peer_bytes_ = 0;
  std::array<Queue, devices::lane_count> pending_;
  std::size_t pieces_ = 0;
  std::optional<Clock::TimePoint> first_work_;
  Clock::TimePoint still_since_;
  std::optional<Error> error_;
  std::array<std::optional<devices::Mark>, devices::lane_count> last_marks_;
  std::unique_ptr<devices::GpuSession> session_;
};

}  // namespace chorus::engine
