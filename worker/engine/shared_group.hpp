// A group whose members all see each other's memory: its calls run on the callers' own threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/engine/data_plane.hpp"
#include "worker/engine/flight_recorder.hpp"
#include "worker/engine/interruption.hpp"
#include "worker/engine/shared_call.hpp"
#include "worker/engine/shared_lane.hpp"
#include "worker/engine/shared_wait.hpp"
#include "worker/engine/tick_clock.hpp"
#include "worker/memory/arena.hpp"
#include "worker/memory/region_book.hpp"

namespace chorus::engine {

// What a member tells the others before the first call. Travels as it lies in memory.
struct SharedCard {
  memory::Ticket ticket;  // id 0: this member has no memory to share
  std::uint64_t board_offset = 0;
  std::uint32_t layout = board_layout;
  std::uint32_t reserved = 0;  // zero
};
static_assert(sizeof(SharedCard) == 48 && std::has_unique_object_representations_v<SharedCard>);

// One call at a time, from any thread. After a failure no call is made any more.
class SharedGroup {
 public:
  // Makes the own board. The arena outlives the group. `members` in rank order. Errors: MemoryErrc::unavailable.
  [[nodiscard]] static Result<std::unique_ptr<SharedGroup>> make(memory::Arena& arena, plan::Rank rank,
                                                                 std::vector<Peer> members);
  ~SharedGroup();
  SharedGroup(SharedGroup const&) = delete;
  SharedGroup& operator=(SharedGroup const&) = delete;

  [[nodiscard]] SharedCard card() const;

  // Finds everybody's board. Errors: MemoryErrc, the detail names the member whose memory is not to be seen.
  [[nodiscard]] Status meet(std::span<SharedCard const> cards, memory::RegionBook& regions);

  // From now on the recorder, which outlives this, is told of calls of the group that stand still.
  void tell_of_stalls(FlightRecorder* recorder, std::string group, std::uint32_t epoch);

  // Every member has met all. The call was made for this group's arena. An interruption, if there is one to look at,
  // ends the call here, and the others hear of it. `sequence`: of the call, in the group.
  [[nodiscard]] RunResult run(SharedCall& call, std::uint64_t sequence, std::string const& description,
                              std::span<std::byte const> input, std::span<std::byte> output,
                              std::chrono::milliseconds timeout, Interruption const* interruption = nullptr);
  // See SharedCall::begin_in_pieces.
  [[nodiscard]] RunResult run_in_pieces(SharedCall& call, std::uint64_t sequence, std::string const& description,
                                        std::span<std::byte const> input, std::span<std::span<std::byte> const> pieces,
                                        std::chrono::milliseconds timeout, Interruption const* interruption);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  SharedGroup(memory::Arena& arena, plan::Rank rank, std::vector<Peer> members, BoardLayout layout,
              std::span<std::byte> board);
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
  [[nodiscard]] std::optional<Failure> lost(SharedCall const& call) const;
  [[nodiscard]] std::optional<Failure> expired(SharedCall const& call, TimePoint now) const;
  [[nodiscard]] bool sees_all() const;
  // Whether nobody looks at the own board any more, and after a failure whether nobody writes to the outputs: waits a
  // moment for those who are about to leave.
  [[nodiscard]] bool is_left_by_all() const;
  [[nodiscard]] bool has_left(SharedLane const& lane) const;
  void tell(Failure const& failure);
  // What others may still write to, after a failure.
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
  std::optional<std::uint64_t> described_;  // the fingerprint of what the description is of
  std::string description_;                 // of the call at hand
  Interruption const* interruption_ = nullptr;
  TickClock clock_;
  std::chrono::milliseconds timeout_{};  // of the call at hand
  TimePoint started_, deadline_;
  TimePoint looked_for_life_;

  FlightRecorder* flights_ = nullptr;
  std::string group_;
  std::uint32_t epoch_ = 0;
  std::uint64_t sequence_ = 0;  // of the call at hand
  std::uint64_t moves_ = 0;     // of it
  std::uint64_t moves_seen_ = 0;
  TimePoint still_since_;
  bool is_stalled_ = false;
  std::optional<Failure> failure_;                   // of the last call there will be
  std::vector<memory::Arena::Withdrawn> withdrawn_;  // because of it
};

}  // namespace chorus::engine
