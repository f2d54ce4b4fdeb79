// What one run has its GPU do: copies in, reductions and copies out, each followed until it is done.
//
// The data thread queues work and looks, now and then, how far the device has come; it never waits for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/engine/clock.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/gpu/gpu_workspace.hpp"
#include "worker/engine/gpu/pinned_area.hpp"
#include "worker/engine/gpu/staging.hpp"
#include "worker/links/lending.hpp"

namespace chorus::engine {

// Memory of a peer's GPU that this one reads and, where the peer says so, writes.
using Borrowed = std::shared_ptr<devices::BorrowedArena const>;

// A part of a message, or of an instruction that stays here, while the device has it.
struct DevicePiece {
  std::uint32_t number = 0;  // of the message, or of the instruction
  std::uint64_t bytes = 0;
  std::uint32_t block = 0;  // the channel's, if `frees_block`
  bool frees_block = false;
};

// Is told when a piece is done. Outlives the work.
class DeviceClient {
 public:
  virtual void device_did(DevicePiece const& piece) = 0;

 protected:
  ~DeviceClient() = default;
};

// What a reduction completes it sends on: to a peer's memory in the same pass, if there is room. Outlives the work.
class DeviceSharer : public DeviceClient {
 public:
  struct Share {
    std::byte* place = nullptr;
    std::uint32_t number = 0;  // of the piece that the client will be told of
  };
  // These bytes are sent next, and go there with what makes them; nothing: they are not, or there is no room yet.
  [[nodiscard]] virtual std::optional<Share> shares(std::span<std::byte const> result) = 0;

 protected:
  ~DeviceSharer() = default;
};

// Lives on the data thread. After an error nothing more is queued, and nobody is told of anything.
class DeviceWork final : private Sharers {
 public:
  // Takes all that the run will ever need: a session, memory of the device and, where no message `may_lie_in_place`,
  // pinned memory; otherwise that is taken when the first peer wants frames. The spec is checked and has a GPU; it and
  // the clock outlive the work. Errors: GpuErrc, with what the run needs and what bounds it.
  [[nodiscard]] static Result<std::unique_ptr<DeviceWork>> begin(RunSpec const& spec, std::uint64_t eager_bytes,
                                                                 bool may_lie_in_place, Clock& clock);
  ~DeviceWork();
  DeviceWork(DeviceWork const&) = delete;
  DeviceWork& operator=(DeviceWork const&) = delete;

  // Where the n-th channel of the program has its blocks. The first that asks takes pinned memory for all channels that
  // do not do without; it never becomes more. Null: there is none, which is the work's error.
  [[nodiscard]] ChannelStaging const* stage(std::uint32_t channel);
  [[nodiscard]] std::uint64_t block_bytes() const { return staging_->block_bytes; }  // once somebody has staged
  // The messages of this channel, in one direction, do without blocks.
  void lends(std::uint32_t channel) { messages_[channel].sends.clear(); }
  void borrows(std::uint32_t channel, plan::Rank peer, Borrowed arena);
  // Empty: nothing of the peer's.
  [[nodiscard]] std::span<std::byte> borrowed_of(plan::Rank peer) const;
  // Those are written where they are to lie.
  void is_written(std::uint32_t channel) { messages_[channel].receives.clear(); }

  // Where the run's messages lie is one arena, which can be lent.
  [[nodiscard]] bool lies_in_arena() const;
  [[nodiscard]] Result<links::Lend> lend(std::uint64_t incarnation);
  [[nodiscard]] devices::GpuUnit& unit() const { return unit_; }

  [[nodiscard]] std::span<std::byte> pinned(std::uint64_t offset, std::uint64_t limit) const {
    return pinned_.at(offset, limit);
  }

  // Queue the next bytes of instruction i, which lie at this offset of the pinned memory or go there; `client` is told
  // of the piece when they are done.
  void receive(std::uint32_t i, std::uint64_t offset, DevicePiece const& piece, DeviceClient& client);
  void send(std::uint32_t i, std::uint64_t offset, DevicePiece const& piece, DeviceClient& client);
  // The same of bytes that lie in a peer's memory, on the device.
  void read(std::uint32_t i, std::byte const* from, DevicePiece const& piece, DeviceClient& client);
  // From now on asked for what read() completes.
  void share_with(DeviceSharer& sharer) { sharers_.push_back(&sharer); }
  // Where the next bytes that instruction i sends lie, at most so many.
  [[nodiscard]] std::span<std::byte const> next_source(std::uint32_t i, std::uint64_t limit) const {
    return workspace_.source(i, limit);
  }
  // Goes past bytes that instruction i sends.
  void was_shared(std::uint32_t i, std::uint64_t bytes) { workspace_.skip_source(i, bytes); }
  // The next bytes that instruction i sends go to a peer's memory, on the device.
  void write(std::uint32_t i, std::byte* to, DevicePiece const& piece, DeviceClient& client);
  // The next bytes that instruction i sends, at most so many, as a peer reads them; goes past them.
  [[nodiscard]] links::Place show(std::uint32_t i, std::uint64_t limit);
  // The same of what instruction i receives as it is, as a peer writes it.
  [[nodiscard]] links::Place room(std::uint32_t i, std::uint64_t limit);
  [[nodiscard]] bool receives_as_it_is(std::uint32_t i) const { return workspace_.receives_as_it_is(i); }
  // The same as receive() of a copy or reduce.
  void work(std::uint32_t i, DevicePiece const& piece, DeviceClient& client);

  // Tells of what has been done meanwhile. True if there was any, or an error.
  bool poll();
  // There is something to poll for: work, or an error, which may have come between two polls.
  [[nodiscard]] bool is_at_work() const { return pieces_ != 0 || error_; }
  [[nodiscard]] std::optional<Error> const& error() const { return error_; }
  // Since when it has had work and done none of it.
  [[nodiscard]] Clock::TimePoint still_since() const { return still_since_; }
  [[nodiscard]] std::string device() const;  // "cuda:0"

  // Whether the device has nothing left of this run, which queues no more. Asked again until it is so.
  [[nodiscard]] bool rests();
  // It has been asked for too long: the device counts as lost. Nothing of this is freed before it rests.
  void give_up();

  struct Report {
    devices::GpuUse use;
    std::vector<devices::GpuSpan> spans;  // from `started` on
  };
  // Of what was done.
  [[nodiscard]] Report report(Clock::TimePoint started);

 private:
  struct Pending {
    devices::Mark mark;
    DevicePiece piece;
    DeviceClient* client = nullptr;
  };
  // Those of a lane, first in, first out, in a ring that grows rarely.
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
  // Gives the mark behind which the piece is done.
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
  std::vector<ChannelMessages> messages_;  // those that need blocks
  std::optional<Staging> staging_;
  PinnedArea pinned_;
  std::shared_ptr<devices::GpuMemory> memory_;  // scratch; null if none is needed
  std::shared_ptr<devices::GpuMemory> twin_;    // of the pinned memory that is received into; likewise
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
  std::vector<Shared> shared_;  // of the pass that is being queued
  std::uint64_t peer_bytes_ = 0;
  std::array<Queue, devices::lane_count> pending_;
  std::size_t pieces_ = 0;
  std::optional<Clock::TimePoint> first_work_;
  Clock::TimePoint still_since_;
  std::optional<Error> error_;
  std::array<std::optional<devices::Mark>, devices::lane_count> last_marks_;
  std::unique_ptr<devices::GpuSession> session_;  // goes first: it waits for what it still does with the rest
};

}  // namespace chorus::engine
