#include "worker/engine/shm/shared_group.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <thread>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/engine/trace/run_identity.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/memory/pages/page.hpp"

namespace chorus::engine {
namespace {

constexpr std::chrono::milliseconds life_every{50};
constexpr std::chrono::milliseconds patience_with_the_last{10};
// Like PeerWatch::grace: members that know which peer is silent report it first.
constexpr std::chrono::milliseconds grace{100};

// True if the peer has ended this number of calls, or makes none any more: it has failed or given its board back.
// Truncated memory, which reads as zeros, is no board that was given back.
bool is_done(SharedLane const& lane, std::uint64_t calls) {
  return (lane.board().failed.load(std::memory_order_acquire) != no_failure ||
          lane.board().ended.load(std::memory_order_acquire) >= calls) &&
         !lane.region().mapping().is_broken();
}

}  // namespace

Result<std::unique_ptr<SharedGroup>> SharedGroup::make(memory::Arena& arena, plan::Rank rank, std::vector<Peer> members,
                                                       std::chrono::milliseconds silence) {
  BoardLayout const layout(static_cast<std::uint32_t>(members.size()));
  auto const board = arena.allocate_once(layout.board_bytes());
  if (board.has_error()) return board.error();
  return std::unique_ptr<SharedGroup>(new SharedGroup(arena, rank, std::move(members), layout, *board, silence));
}

SharedGroup::SharedGroup(memory::Arena& arena, plan::Rank rank, std::vector<Peer> members, BoardLayout layout,
                         std::span<std::byte> board, std::chrono::milliseconds silence)
    : arena_(arena),
      rank_(rank),
      members_(std::move(members)),
      layout_(layout),
      board_(board),
      lanes_(members_.size()),
      shares_cores_(members_.size() > std::max(std::thread::hardware_concurrency(), 1U)),
      pulses_(members_.size(), PulseWatch(silence)) {
  new (board_.data()) BoardHead{};
  for (std::uint32_t sender = 0; sender < layout_.ranks; ++sender) new (board_.data() + layout_.lane_at(sender)) Lane{};
}

// The whole board stays while another member is still in a call that has ended well here: that member may not have read
// the slots yet, or not have seen that its messages were read. Its next call ends by the notice. Otherwise the head
// stays, for those that have yet to read the reason of a failure: a member that sees the failure uses nothing else.
SharedGroup::~SharedGroup() {
  if (is_left_by_all())
    for (auto const& place : withdrawn_) arena_.readmit(place);
  auto const failed = own().failed.load(std::memory_order_relaxed);
  auto const good = std::min(failed - 1, calls_);
  bool const is_in_use = std::any_of(lanes_.begin(), lanes_.end(), [good](auto const& lane) {
    return lane != nullptr && !is_done(*lane, good) && lane->region().owner_lives();
  });
  if (is_in_use) leave({EngineErrc::peer_lost, name_of(rank_) + " has left the group", {rank_}, {}});
  auto const head_bytes = (sizeof(BoardHead) + memory::page_bytes - 1) / memory::page_bytes * memory::page_bytes;
  auto const kept = is_in_use ? board_.size() : failed != no_failure ? head_bytes : 0;
  if (kept != 0) arena_.retire_later(board_.first(kept));
  if (kept != board_.size()) arena_.retire(board_.subspan(kept));
}

bool SharedGroup::is_left_by_all() const {
  auto const calls = failure_ ? std::numeric_limits<std::uint64_t>::max() : calls_;
  auto const give_up = std::chrono::steady_clock::now() + patience_with_the_last;
  return std::all_of(lanes_.begin(), lanes_.end(), [&](auto const& lane) {
    while (lane != nullptr && !is_done(*lane, calls)) {
      if (std::chrono::steady_clock::now() >= give_up) return !lane->region().owner_lives();
      std::this_thread::yield();
    }
    return true;
  });
}

SharedCard SharedGroup::card() const {
  SharedCard card;
  card.ticket = arena_.ticket();
  card.board_offset = static_cast<std::uint64_t>(board_.data() - arena_.mapping().bytes().data());
  return card;
}

Status SharedGroup::meet(std::span<SharedCard const> cards, memory::RegionRegistry& regions) {
  CHORUS_ASSERT(cards.size() == members_.size(), "a card from everybody");
  for (plan::Rank peer = 0; peer < members_.size(); ++peer) {
    if (peer == rank_) continue;
    auto const& card = cards[peer];
    auto const cannot = [&](Error why) { return Error(why.code, name_of(peer) + ": " + why.detail); };
    if (card.layout != board_layout)
      return cannot(Error(memory::MemoryErrc::damaged, "its boards have layout " + std::to_string(card.layout)));
    auto region = regions.open(card.ticket);
    if (region.has_error()) return cannot(region.error());
    auto const board = (*region)->mapping().at(card.board_offset, layout_.board_bytes());
    if (board.empty() || card.board_offset % line_bytes != 0)
      return cannot(Error(memory::MemoryErrc::damaged, "its board is not within its memory"));
    lanes_[peer] =
        std::make_unique<SharedLane>(layout_, rank_, peer, board_, arena_.mapping(), std::move(*region), board);
  }
  return ok();
}

std::string SharedGroup::name_of(plan::Rank rank) const {
  return "rank " + std::to_string(rank) + " (" + members_[rank].worker + ")";
}

RunResult SharedGroup::run(SharedCall& call, std::uint64_t sequence, std::string const& description,
                           std::span<std::byte const> input, std::span<std::byte> output,
                           std::chrono::milliseconds timeout, Interruption const* interruption) {
  enter(call, sequence, description, timeout, interruption);
  call.begin(calls_, lanes_, input, output);
  return go_on(call, std::span(&output, 1));
}

RunResult SharedGroup::run_in_pieces(SharedCall& call, std::uint64_t sequence, std::string const& description,
                                     std::span<std::byte const> input, std::span<std::span<std::byte> const> pieces,
                                     std::chrono::milliseconds timeout, Interruption const* interruption) {
  enter(call, sequence, description, timeout, interruption);
  call.begin_in_pieces(calls_, lanes_, input, pieces);
  return go_on(call, pieces);
}

void SharedGroup::enter(SharedCall const& call, std::uint64_t sequence, std::string const& description,
                        std::chrono::milliseconds timeout, Interruption const* interruption) {
  interruption_ = interruption;
  timeout_ = timeout;
  sequence_ = sequence;
  moves_ = moves_seen_ = 0;
  if (described_ != call.fingerprint()) describe(call, description);
  own().entered.store(calls_ + 1, std::memory_order_release);
}

void SharedGroup::look_at_the_clock() {
  started_ = looked_for_life_ = still_since_ = clock_.now();
  deadline_ = started_ + timeout_;
}

void SharedGroup::take_turns(SharedCall& call) {
  using Turn = SharedCall::Turn;
  SharedWait wait(arena_.mapping().head(), shares_cores_);
  // Small messages are sent before the clock is read: reading it takes a tenth of a small call, and fits into the wait
  // for the peers.
  bool const sends_first = call.exchanges();
  if (!sends_first) look_at_the_clock();
  auto turn = call.turn();
  if (sends_first) look_at_the_clock();
  for (; turn != Turn::done; turn = call.turn()) {
    if (turn == Turn::moved) {
      ++moves_;
      if (wait.moved()) failure_ = look_around(call);
    } else if (turn == Turn::waits) {
      wait_for(call, wait);
    } else {
      failure_ = call.failure();
      if (failure_->code == EngineErrc::plan_mismatch) failure_ = disagreement(failure_->culprits.front());
    }
    if (failure_) return;
  }
}

// Usually the call waits for one record, and is fastest when it looks at that alone.
void SharedGroup::wait_for(SharedCall const& call, SharedWait& wait) {
  do {
    auto const look = call.awaits_one_record() ? SharedWait::Look::at_one_word : SharedWait::Look::at_all;
    if (!wait.pause(look)) continue;
    failure_ = look_around(call);
    return;
  } while (call.awaits_one_record());
}

void SharedGroup::withdraw(std::span<std::span<std::byte> const> outputs) {
  for (auto const output : outputs) {
    auto const withdrawn = arena_.withdraw(output);
    if (withdrawn.has_error()) {
      failure_->text += "; the output may still change: " + withdrawn.error().detail;
      return;
    }
    withdrawn_.push_back(*withdrawn);
  }
}

RunResult SharedGroup::go_on(SharedCall& call, std::span<std::span<std::byte> const> outputs) {
  if (!failure_) take_turns(call);
  if (!failure_ && !sees_all()) failure_ = lost(call, clock_.now());
  if (!failure_) failure_ = left_by_others();
  RunResult result;
  if (failure_) {
    tell(*failure_);
    if (call.has_offered()) withdraw(outputs);
    call.leave_to_peers();
    result.status = Error(failure_->code, failure_->detail());
    result.culprits = failure_->culprits;
  }
  own().ended.store(++calls_, std::memory_order_release);
  if (std::exchange(is_stalled_, false)) flights_->goes_on(local_run_number(group_, epoch_, sequence_));
  result.started = started_;
  auto& statistics = result.statistics;
  statistics.duration = std::max(clock_.now() - started_, std::chrono::steady_clock::duration::zero());
  statistics.bytes_sent = call.bytes_sent();
  statistics.bytes_received = call.bytes_received();
  statistics.steps = call.instructions_done();
  statistics.reduced = call.reduced();
  return result;
}

void SharedGroup::tell_of_stalls(FlightRecorder* recorder, std::string group, std::uint32_t epoch) {
  flights_ = recorder;
  group_ = std::move(group);
  epoch_ = epoch;
}

void SharedGroup::look_for_stall(SharedCall const& call, TimePoint now) {
  if (std::exchange(moves_seen_, moves_) != moves_) still_since_ = now;
  if (flights_ == nullptr || is_stalled_ == (now - still_since_ >= flights_->stall_after())) return;
  is_stalled_ = !is_stalled_;
  if (is_stalled_)
    flights_->stalled(progress(call, now));
  else
    flights_->goes_on(local_run_number(group_, epoch_, sequence_));
}

RunProgress SharedGroup::progress(SharedCall const& call, TimePoint now) const {
  RunProgress progress;
  progress.run = local_run_number(group_, epoch_, sequence_);
  progress.group = group_;
  progress.epoch = epoch_;
  progress.description = description_;
  progress.rank = rank_;
  progress.ranks = static_cast<std::uint32_t>(members_.size());
  progress.seconds = std::chrono::duration<double>(now - started_).count();
  progress.still_seconds = std::chrono::duration<double>(now - still_since_).count();
  progress.steps_done = call.instructions_done();
  progress.steps = static_cast<std::uint32_t>(call.program().instructions.size());
  progress.bytes_sent = call.bytes_sent();
  progress.bytes_received = call.bytes_received();
  for (auto& awaited : call.awaited()) {
    auto const is_known = [&awaited](Awaited const& known) { return known.rank == awaited.rank; };
    if (std::any_of(progress.waiting_for.begin(), progress.waiting_for.end(), is_known)) continue;
    bool const has_called = lanes_[awaited.rank]->board().entered.load(std::memory_order_acquire) > calls_;
    progress.waiting_for.push_back({awaited.rank, members_[awaited.rank].worker, std::move(awaited.where),
                                    has_called ? links::Suspicion::slow : links::Suspicion::not_called,
                                    std::chrono::duration_cast<std::chrono::microseconds>(now - still_since_)});
  }
  return progress;
}

void SharedGroup::describe(SharedCall const& call, std::string const& description) {
  described_ = call.fingerprint();
  description_ = description;
  auto& board = own();
  board.fingerprint.store(call.fingerprint(), std::memory_order_release);
  auto const bytes = std::min(description.size(), board.description.size());
  std::copy_n(description.begin(), bytes, board.description.begin());
  board.description_bytes = static_cast<std::uint32_t>(bytes);
}

Failure SharedGroup::disagreement(plan::Rank other) const {
  auto const& board = lanes_[other]->board();
  auto const bytes = std::min<std::size_t>(board.description_bytes, board.description.size());
  std::string theirs(board.description.data(), bytes);
  for (auto& c : theirs)
    if (c < ' ' || c > '~') c = '?';
  // The board has what the member calls now, which may be another call than the one that differs.
  auto what = " runs '" + theirs + "'";
  if (board.entered.load(std::memory_order_acquire) > calls_ + 1)
    what = " called something else there, and is at '" + theirs + "' by now";
  else if (theirs == description_)
    what = " called something else before, and runs the same now";
  return {EngineErrc::plan_mismatch,
          name_of(rank_) + " runs '" + description_ + "', " + name_of(other) + what,
          {std::min(rank_, other), std::max(rank_, other)},
          {}};
}

bool SharedGroup::sees_all() const {
  return !arena_.mapping().is_broken() && std::all_of(lanes_.begin(), lanes_.end(), [](auto const& lane) {
    return lane == nullptr || !lane->region().mapping().is_broken();
  });
}

void SharedGroup::leave(Failure why) {
  if (failure_) return;
  failure_ = std::move(why);
  tell(*failure_);
}

void SharedGroup::tell(Failure const& failure) {
  own().failure_notice_bytes = links::encode(to_failure_notice(failure, 0), own().failure_notice);
  own().failed.store(calls_ + 1, std::memory_order_release);
  for (auto const& lane : lanes_)
    if (lane) lane->ring();
}

// All data has arrived, but a member that has failed in this call may have changed its memory before it was read here,
// and a board that was given back may have been read as zeros. Every member is asked, also one from which nothing came:
// another member may have passed on what it read there.
std::optional<Failure> SharedGroup::left_by_others() const {
  std::atomic_thread_fence(std::memory_order_acquire);
  bool const is_left = std::any_of(lanes_.begin(), lanes_.end(), [this](auto const& lane) {
    auto const failed = lane != nullptr ? lane->board().failed.load(std::memory_order_acquire) : no_failure;
    return failed == calls_ + 1 || failed == 0;
  });
  return is_left ? told_by_others() : std::nullopt;
}

// A member that has failed in a later call has done its part of this one.
std::optional<Failure> SharedGroup::told_by_others() const {
  for (auto const& lane : lanes_) {
    auto const failed = lane != nullptr ? lane->board().failed.load(std::memory_order_acquire) : no_failure;
    if (failed > calls_ + 1) continue;
    if (failed == 0)
      return gone(lane->peer(), "reading its memory",
                  lane->region().mapping().is_broken() ? "it was truncated" : "it has left the group");
    auto const bytes = std::min<std::size_t>(lane->board().failure_notice_bytes, links::failure_notice_bytes_max);
    auto const copy = lane->board().failure_notice;
    auto const failure_notice = links::decode_failure_notice(std::span(copy).first(bytes));
    if (failure_notice.has_value()) return from_failure_notice(*failure_notice, name_of(lane->peer()));
    return Failure{
        EngineErrc::protocol_error, name_of(lane->peer()) + " failed and does not say why", {lane->peer()}, {}};
  }
  return std::nullopt;
}

Failure SharedGroup::gone(plan::Rank rank, std::string const& where, std::string const& why) const {
  return {EngineErrc::peer_lost, "lost " + name_of(rank) + " while " + where + ": " + why, {rank}, {}};
}

std::optional<Failure> SharedGroup::lost(SharedCall const& call, TimePoint now) {
  for (auto const& lane : lanes_)
    if (lane && lane->region().mapping().is_broken())
      return gone(lane->peer(), "reading its memory", "it was truncated");
  if (arena_.mapping().is_broken())
    return Failure{EngineErrc::aborted, "the shared memory of " + name_of(rank_) + " was truncated", {rank_}, {}};
  for (auto const& [rank, where] : call.awaited()) {
    auto const& region = lanes_[rank]->region();
    if (!region.owner_lives()) return gone(rank, where, "its process has ended");
    auto const pulse = region.mapping().head().pulse.load(std::memory_order_relaxed);
    if (auto const still = pulses_[rank].look(pulse, now))
      return gone(rank, where, "no sign of life for " + std::to_string(still->count()) + " ms");
  }
  return std::nullopt;
}

// Between the two other numbers, the fingerprint is that of the call with this number: it changes after a call has
// ended, and before the next one is entered.
std::optional<Failure> SharedGroup::differing(SharedCall const& call) const {
  for (auto const& lane : lanes_) {
    if (lane == nullptr) continue;
    auto const& board = lane->board();
    if (board.entered.load(std::memory_order_acquire) != calls_ + 1) continue;
    auto const fingerprint = board.fingerprint.load(std::memory_order_acquire);
    if (board.ended.load(std::memory_order_acquire) != calls_) continue;
    if (fingerprint != 0 && fingerprint != call.fingerprint()) return disagreement(lane->peer());
  }
  return std::nullopt;
}

std::optional<Failure> SharedGroup::expired(SharedCall const& call, TimePoint now) const {
  if (now < deadline_) return std::nullopt;
  std::vector<SharedCall::Awaited> silent, slow;
  for (auto& awaited : call.awaited()) {
    bool const has_called = lanes_[awaited.rank]->board().entered.load(std::memory_order_acquire) > calls_;
    (has_called ? slow : silent).push_back(std::move(awaited));
  }
  if (silent.empty() && members_.size() > 2 && now < deadline_ + grace) return std::nullopt;
  Failure failure;
  failure.code = EngineErrc::deadline_exceeded;
  auto const allowed = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - started_).count();
  failure.text = "not finished after " + std::to_string(allowed) + " ms";
  for (auto const& [rank, where] : silent.empty() ? slow : silent) {
    if (std::find(failure.culprits.begin(), failure.culprits.end(), rank) != failure.culprits.end()) continue;
    failure.text += (failure.culprits.empty() ? ": " : ", ") + name_of(rank) +
                    (silent.empty() ? " was slow, " + where : std::string(" never called"));
    failure.culprits.push_back(rank);
  }
  std::sort(failure.culprits.begin(), failure.culprits.end());
  return failure;
}

std::optional<Failure> SharedGroup::look_around(SharedCall const& call) {
  if (auto told = told_by_others()) return told;
  if (interruption_ != nullptr)
    if (auto interrupted = interruption_->failure()) return interrupted;
  auto const now = clock_.now();
  if (auto too_late = expired(call, now)) return too_late;
  if (now - looked_for_life_ < life_every) return std::nullopt;
  looked_for_life_ = now;
  look_for_stall(call, now);
  if (auto differs = differing(call)) return differs;
  return lost(call, now);
}

}  // namespace chorus::engine
