#include "worker/engine/gpu/device_work.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace chorus::engine {

using devices::GpuErrc;
using devices::Mark;

void DeviceWork::Queue::push(Pending const& pending) {
  if (size_ == ring_.size()) {  // only when more is queued than ever before
    std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(first_), ring_.end());
    first_ = 0;
    ring_.resize(std::max<std::size_t>(2 * ring_.size(), 16));
  }
  ring_[(first_ + size_++) % ring_.size()] = pending;
}

void DeviceWork::Queue::pop() {
  first_ = (first_ + 1) % ring_.size();
  --size_;
}

DeviceWork::DeviceWork(RunSpec const& spec, std::uint64_t eager_bytes, Clock& clock)
    : unit_(*spec.gpu),
      clock_(clock),
      program_(*spec.program),
      input_(spec.input),
      output_(spec.output),
      eager_bytes_(eager_bytes),
      workspace_(*spec.program, spec.dtype, spec.reduce, spec.sizes, spec.input, spec.output),
      messages_(channel_messages(*spec.program)),
      still_since_(clock.now()) {}

Result<std::unique_ptr<DeviceWork>> DeviceWork::begin(RunSpec const& spec, std::uint64_t eager_bytes,
                                                      bool may_lie_in_place, Clock& clock) {
  std::unique_ptr<DeviceWork> work(new DeviceWork(spec, eager_bytes, clock));
  if (auto const reserved = work->reserve(may_lie_in_place); !reserved) {
    spec.gpu->saw(reserved.error());
    return reserved.error();
  }
  return work;
}

Status DeviceWork::reserve(bool may_lie_in_place) {
  if (auto const why = unit_.lost()) return Error(GpuErrc::lost, *why);
  if (auto const bytes = workspace_.own_bytes(); bytes != 0) {
    auto memory = unit_.acquire(bytes);
    if (!memory) return Error(memory.error().code, memory.error().detail + ", by a run for its partial results");
    memory_ = std::move(*memory);
    workspace_.lie_in(memory_->bytes().data());
  }
  auto session = unit_.session();
  if (!session) return session.error();
  session_ = std::move(*session);
  return may_lie_in_place ? ok() : take_blocks();
}

ChannelStaging const* DeviceWork::stage(std::uint32_t channel) {
  if (error_) return nullptr;
  if (!staging_)
    if (auto const taken = take_blocks(); !taken) {
      failed(taken.error());
      return nullptr;
    }
  return &staging_->channels[channel];
}

// Fewer blocks make a run slower, but must not make it fail.
Status DeviceWork::take_blocks() {
  // Leaves room for several concurrent runs.
  auto bytes_max = unit_.pinned().limit_bytes() / 4;
  for (;;) {
    auto const staging = plan_staging(program_, messages_, workspace_.total_bytes(), eager_bytes_, bytes_max);
    auto const taken = take_blocks(staging);
    bool const is_short = taken.has_error() && taken.error().code == GpuErrc::out_of_memory;
    if (!is_short || staging.bytes > bytes_max) return taken;
    bytes_max = staging.bytes - 1;  // plan with less
  }
}

Status DeviceWork::take_blocks(Staging const& staging) {
  auto& pool = unit_.pinned();
  auto pinned = PinnedArea::take(pool, staging.bytes, staging.block_bytes);
  if (!pinned && pinned.error().code == GpuErrc::out_of_memory)
    return Error(GpuErrc::out_of_memory, device() + ": the run needs " + std::to_string(staging.bytes) +
                                             " bytes of pinned memory, and --gpu-pinned-bytes allows " +
                                             std::to_string(pool.limit_bytes()) +
                                             " for all runs there together: " + pinned.error().detail);
  if (!pinned) return pinned.error();
  bool const needs_twin = std::any_of(messages_.begin(), messages_.end(), [this](ChannelMessages const& messages) {
    return std::any_of(messages.receives.begin(), messages.receives.end(),
                       [this](std::uint32_t i) { return !workspace_.receives_as_it_is(i); });
  });
  if (needs_twin && staging.received_bytes != 0) {
    auto memory = unit_.acquire(staging.received_bytes);
    if (!memory) return Error(memory.error().code, memory.error().detail + ", by a run for what it receives");
    twin_ = std::move(*memory);
  }
  pinned_ = std::move(*pinned);
  staging_ = staging;
  return ok();
}

void DeviceWork::borrows(std::uint32_t channel, plan::Rank peer, Borrowed arena) {
  messages_[channel].receives.clear();
  borrowed_.push_back({peer, std::move(arena)});
}

std::span<std::byte> DeviceWork::borrowed_of(plan::Rank peer) const {
  auto const found = std::ranges::find(borrowed_, peer, &OfPeer::peer);
  return found == borrowed_.end() ? std::span<std::byte>() : found->arena->bytes();
}

// False for memory that a client has lent to this worker.
bool DeviceWork::lies_in_arena() const {
  auto const arena = unit_.arena_if_any();
  if (arena == nullptr) return false;
  auto const whole = arena->bytes();
  auto const holds = [whole](std::span<std::byte const> bytes) {
    return bytes.empty() ||
           (bytes.data() >= whole.data() && bytes.data() + bytes.size() <= whole.data() + whole.size());
  };
  return holds(input_) && holds(output_);
}

Result<links::Lend> DeviceWork::lend(std::uint64_t proof) {
  auto const lent = unit_.lend(proof);
  if (lent.has_error()) return lent.error();
  arena_begin_ = unit_.arena_if_any()->bytes().data();
  links::Lend lend{.handle = lent->handle, .writes = 1, .bytes = lent->bytes, .proof_at = lent->proof_at};
  links::set_uuid(lend, lent->uuid);
  return lend;
}

DeviceWork::~DeviceWork() {
  if (!session_) return;
  if (!error_ && pieces_ == 0) {
    unit_.give_back(std::move(session_));
    return;
  }
  using Used = std::tuple<PinnedArea, std::shared_ptr<devices::GpuMemory>, std::shared_ptr<devices::GpuMemory>,
                          std::vector<OfPeer>>;
  unit_.abandon(std::move(session_),
                std::make_shared<Used>(std::move(pinned_), std::move(memory_), std::move(twin_), std::move(borrowed_)));
}

std::string DeviceWork::device() const { return devices::device_name(unit_.gpu().info().index); }

void DeviceWork::began() {
  auto const now = clock_.now();
  if (pieces_++ == 0) still_since_ = now;
  if (!first_work_) first_work_ = now;
}

// A lost device fails with the first reason known, no matter which run saw it.
void DeviceWork::failed(Error const& why) {
  unit_.saw(why);
  if (error_) return;
  auto const lost = why.code == GpuErrc::lost ? unit_.lost() : std::nullopt;
  error_ = lost ? Error(GpuErrc::lost, *lost) : why;
}

Mark DeviceWork::follow_up(Status const& queued, Mark mark, DevicePiece const& piece, DeviceClient& client) {
  if (!queued) failed(queued.error());
  if (!error_ && mark.number == 0) {  // not marked yet
    auto const made = session_->mark(mark.lane);
    if (made)
      mark = *made;
    else
      failed(made.error());
  }
  if (error_) return mark;
  began();
  of(mark.lane).push({mark, piece, &client});
  return mark;
}

Status DeviceWork::queue_receive(std::uint32_t i, std::uint64_t offset, std::uint64_t bytes, Mark& mark) {
  bool const as_it_is = workspace_.receives_as_it_is(i);
  for (std::uint64_t at = 0; at < bytes;) {
    auto const from = pinned_.at(offset + at, bytes - at);
    auto const queued =
        as_it_is ? workspace_.copy_in(*session_, i, from.data(), from.size())
                 : session_->copy(devices::Lane::in, twin_->bytes().data() + offset + at, from.data(), from.size());
    if (!queued) return queued;
    at += from.size();
  }
  mark.lane = devices::Lane::in;
  if (as_it_is) return ok();
  auto const there = session_->mark(devices::Lane::in);
  if (!there) return there.error();
  if (auto const follows = session_->follow(devices::Lane::compute, *there); !follows) return follows;
  mark.lane = devices::Lane::compute;
  return workspace_.take_in(*session_, i, twin_->bytes().data() + offset, bytes);
}

void DeviceWork::receive(std::uint32_t i, std::uint64_t offset, DevicePiece const& piece, DeviceClient& client) {
  if (error_) return;
  Mark mark;
  auto const queued = queue_receive(i, offset, piece.bytes, mark);
  follow_up(queued, mark, piece, client);
}

Status DeviceWork::queue_send(std::uint32_t i, std::uint64_t offset, std::uint64_t bytes) {
  for (std::uint64_t at = 0; at < bytes;) {
    auto const to = pinned_.at(offset + at, bytes - at);
    if (auto const queued = workspace_.copy_out(*session_, devices::Lane::out, i, to.data(), to.size()); !queued)
      return queued;
    at += to.size();
  }
  return ok();
}

void DeviceWork::send(std::uint32_t i, std::uint64_t offset, DevicePiece const& piece, DeviceClient& client) {
  if (error_) return;
  auto const queued = queue_send(i, offset, piece.bytes);
  follow_up(queued, {devices::Lane::out, 0}, piece, client);
}

void DeviceWork::read(std::uint32_t i, std::byte const* from, DevicePiece const& piece, DeviceClient& client) {
  if (error_) return;
  shared_.clear();
  auto const queued = workspace_.take_in(*session_, i, from, piece.bytes, this);
  peer_bytes_ += piece.bytes;
  auto const mark = follow_up(queued, {devices::Lane::compute, 0}, piece, client);
  for (auto const& [sharer, share] : shared_) {
    peer_bytes_ += share.bytes;
    follow_up(ok(), mark, share, *sharer);
  }
}

std::size_t DeviceWork::places_for(std::span<std::byte const> result, std::span<std::byte*> places) {
  std::size_t count = 0;
  for (auto* const sharer : sharers_) {
    if (count == places.size()) break;
    auto const share = sharer->shares(result);
    if (!share) continue;
    places[count++] = share->place;
    shared_.push_back({sharer, {share->number, result.size(), 0, false}});
  }
  return count;
}

void DeviceWork::write(std::uint32_t i, std::byte* to, DevicePiece const& piece, DeviceClient& client) {
  if (error_) return;
  auto const queued = workspace_.copy_out(*session_, devices::Lane::compute, i, to, piece.bytes);
  peer_bytes_ += piece.bytes;
  follow_up(queued, {devices::Lane::compute, 0}, piece, client);
}

links::Place DeviceWork::place_of(std::span<std::byte const> bytes) const {
  return {static_cast<std::uint64_t>(bytes.data() - arena_begin_), bytes.size()};
}

links::Place DeviceWork::show(std::uint32_t i, std::uint64_t limit) {
  return place_of(workspace_.pass_source(i, limit));
}

links::Place DeviceWork::room(std::uint32_t i, std::uint64_t limit) {
  return place_of(workspace_.pass_destination(i, limit));
}

void DeviceWork::work(std::uint32_t i, DevicePiece const& piece, DeviceClient& client) {
  if (error_) return;
  auto const queued = workspace_.work(*session_, i, piece.bytes);
  follow_up(queued, {devices::Lane::compute, 0}, piece, client);
}

bool DeviceWork::poll() {
  bool moved = error_.has_value();
  for (auto& queue : pending_)
    while (!error_ && !queue.empty()) {
      auto const reached = session_->reached(queue.front().mark);
      if (!reached) {
        failed(reached.error());
        return true;
      }
      if (!*reached) break;
      auto const [mark, piece, client] = queue.front();
      queue.pop();
      --pieces_;
      moved = true;
      client->device_did(piece);
    }
  if (moved) still_since_ = clock_.now();
  return moved;
}

bool DeviceWork::rests() {
  if (!error_ && pieces_ == 0) return true;
  // An error may have come between queuing work and its mark.
  if (error_ && error_->code == GpuErrc::lost) return true;
  for (std::size_t lane = 0; lane < devices::lane_count; ++lane) {
    auto& last = last_marks_[lane];
    if (!last) {
      auto const made = session_->mark(static_cast<devices::Lane>(lane));
      if (!made) {
        failed(made.error());
        return made.error().code == GpuErrc::lost;
      }
      last = *made;
    }
    auto const reached = session_->reached(*last);
    if (!reached) {
      failed(reached.error());
      return reached.error().code == GpuErrc::lost;
    }
    if (!*reached) return false;
  }
  pieces_ = 0;
  return true;
}

void DeviceWork::give_up() {
  unit_.saw(Error(GpuErrc::lost, device() + ": it has not done for too long what was queued there"));
}

DeviceWork::Report DeviceWork::report(Clock::TimePoint started) {
  Report report{session_->use(), session_->spans()};
  report.use.peer_bytes = peer_bytes_;
  unit_.count(report.use);
  auto const begun = first_work_.value_or(started) - started;
  auto const begun_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(begun).count();
  for (auto& span : report.spans) {
    span.begin_ns += begun_ns;
    span.end_ns += begun_ns;
  }
  return report;
}

}  // namespace chorus::engine
