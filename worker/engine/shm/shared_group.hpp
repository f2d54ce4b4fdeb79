// A group whose members all see each other's memory: calls run on the callers' own threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/engine/data_plane.hpp"
#include "worker/engine/failure/interruption.hpp"
#include "worker/engine/shm/calls/shared_call.hpp"
#include "worker/engine/shm/lanes/pulse_watch.hpp"
#include "worker/engine/shm/lanes/shared_lane.hpp"
#include "worker/engine/shm/lanes/shared_wait.hpp"
#include "worker/engine/trace/flight_recorder.hpp"
#include "worker/engine/trace/tick_clock.hpp"
#include "worker/memory/arena.hpp"
#include "worker/memory/regions/region_registry.hpp"

namespace chorus::engine {

// What members tell each other before the first call, in its memory representation.
struct SharedCard {
  memory::Ticket ticket;  // id 0: this member has no memory to share
  std::uint64_t board_offset = 0;
  std::uint32_t layout = board_layout;
  std::uint32_t reserved = 0;  // zero
};
static_assert(sizeof(SharedCard) == 48 && std::has_unique_object_representations_v<SharedCard>);

// One call at a time, from any thread. After a failure no further call is possible.
class SharedGroup {
 public:
  // Creates the own board. The arena outlives the group. `members`: in rank order. Errors: MemoryErrc::unavailable.
  // `silence`: how long a member that is waited for may show no sign of life.
  [[nodiscard]] static Result<std::unique_ptr<SharedGroup>> make(
      memory::Arena& arena, plan::Rank rank, std::vector<Peer> members,
      std::chrono::milliseconds silence = DataPlaneOptions().silence);
  ~SharedGroup();
  SharedGroup(SharedGroup const&) = delete;
  SharedGroup& operator=(SharedGroup const&) = delete;

  [[nodiscard]] SharedCard card() const;

  // Maps the boards of all members. Errors: MemoryErrc; the detail names the member whose memory cannot be seen.
  [[nodiscard]] Status meet(std::span<SharedCard const> cards, memory::RegionRegistry& regions);

  // Reports calls that stand still to the recorder, which outlives the group.
  void tell_of_stalls(FlightRecorder* recorder, std::string group, std::uint32_t epoch);

  // Runs a call, which was made for this group's arena; all members have met. An interruption, which may be null, ends
  // the call here, and then at the other members. `sequence`: number of the call in the group.
  [[nodiscard]] RunResult run(SharedCall& call, std::uint64_t sequence, std::string const& description,
                              std::span<std::byte const> input, std::span<std::byte> output,
                              std::chrono::milliseconds timeout, Interruption const* interruption = nullptr);
  // See SharedCall::begin_in_pieces.
  [[nodiscard]] RunResult run_in_pieces(SharedCall& call, std::uint64_t sequence, std::string const& description,
                                        std::span<std::byte const> input, std::span<std::span<std::byte> const> pieces,
                                        std::chrono::milliseconds timeout, Interruption const* interruption);

  // Fails the next call of every member. There is no current call here, and no later one.
  void leave(Failure why);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  SharedGroup(memory::Arena& arena, plan::Rank rank, std::vector<Peer> members, BoardLayout layout,
              std::span<std::byte> board, std::chrono::milliseconds silence);
  void enter(SharedCall const& call, std::uint64_t sequence, std::string const& description,
             std::chrono::milliseconds timeout, Interruption const* interruption);
  [[nodiscard]] RunResult go_on(SharedCall& call, std::span<std::span<std::byte> const> outputs);
  void take_turns(SharedCall& call);
  void wait_for(SharedCall const& call, SharedWait& wait);
  void look_at_the_clock();
  [[nodiscard]] std::optional<Failure> look_around(SharedCall const& call);
  [[nodiscard]] std::optional<Failure> told_by_others() const;
  [[nodiscard]] std::optional<Failure> left_by_others() const;
  [[nodiscard]] Failure disagreement(plan::Rank other) const;
  void describe(SharedCall const& call, std::string const& description);
  void look_for_stall(SharedCall const& call, TimePoint now);
  [[nodiscard]] RunProgress progress(SharedCall const& call, TimePoint now) const;
  [[nodiscard]] Failure gone(plan::Rank rank, std::string const& where, std::string const& why) const;
  [[nodiscard]] std::optional<Failure> lost(SharedCall const& call, TimePoint now);
  // A member that is in a call of another kind.
  [[nodiscard]] std::optional<Failure> differing(SharedCall const& call) const;
  [[nodiscard]] std::optional<Failure> expired(SharedCall const& call, TimePoint now) const;
  [[nodiscard]] bool sees_all() const;
  // True if no member reads the own board any more and, after a failure, none writes to the outputs. Waits a moment for
  // members that are about to leave.
  [[nodiscard]] bool is_left_by_all() const;
  void tell(Failure const& failure);
  // Withdraws, after a failure, memory that other members may still write to.
  void withdraw(std::span<std::span<std::byte> const> outputs);
  [[nodiscard]] std::string name_of(plan::Rank rank) const;
  [[nodiscard]] BoardHead& own() const { return *reinterpret_cast<BoardHead*>(board_.data()); }

  memory::Arena& arena_;
  plan::Rank const rank_;
  std::vector<Peer> const members_;
  BoardLayout const layout_;
  std::span<std::byte> const board_;
  std::vector<std::unique_ptr<SharedLane>> lanes_;  // by rank; null for the own
  bool const shares_cores_;
  std::uint64_t calls_ = 0;
  std::optional<std::uint64_t> described_;  // fingerprint of the call in the board's description
  std::string description_;                 // of the current call
  Interruption const* interruption_ = nullptr;
  TickClock clock_;
  std::chrono::milliseconds timeout_{};  // of the current call
  TimePoint started_, deadline_;
  TimePoint looked_for_life_;
  std::vector<PulseWatch> pulses_;  // by rank

  FlightRecorder* flights_ = nullptr;
  std::string group_;
  std::uint32_t epoch_ = 0;
  std::uint64_t sequence_ = 0;  // of the current call
  std::uint64_t moves_ = 0;     // moves of the current call
  std::uint64_t moves_seen_ = 0;
  TimePoint still_since_;
  bool is_stalled_ = false;
  std::optional<Failure> failure_;                   // ended the last call
  std::vector<memory::Arena::Withdrawn> withdrawn_;  // because of the failure
};

}  // namespace chorus::engine
