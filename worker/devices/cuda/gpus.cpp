#include "worker/devices/cuda/gpus.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>
#include <thread>
#include <utility>

namespace chorus::devices {
namespace {

constexpr std::string_view prefix = "cuda:";
// A pinned slot's copy mostly takes less. After that, the waiting thread sleeps for growing times, so that it does not
// keep a core busy with a device that hangs.
constexpr std::chrono::microseconds mostly_over_within{500}, longest_nap{1000};
constexpr std::size_t idle_sessions_max = 8;

void add(GpuUse& sum, GpuUse const& more) {
  sum.in_bytes += more.in_bytes;
  sum.out_bytes += more.out_bytes;
  sum.folded_bytes += more.folded_bytes;
  sum.stepped_bytes += more.stepped_bytes;
  sum.kernels += more.kernels;
  sum.in_seconds += more.in_seconds;
  sum.out_seconds += more.out_seconds;
  sum.compute_seconds += more.compute_seconds;
  sum.peer_bytes += more.peer_bytes;
  sum.nccl_bytes += more.nccl_bytes;
}

template <class Ready>
Result<bool> wait_until(Ready const& is_ready, std::chrono::steady_clock::time_point deadline) {
  auto const begun = std::chrono::steady_clock::now();
  for (;;) {
    Result<bool> const ready = is_ready();
    if (!ready || *ready) return ready;
    auto const now = std::chrono::steady_clock::now();
    if (now >= deadline) return false;
    if (auto const waited = now - begun; waited < mostly_over_within)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(waited / 8, longest_nap));
  }
}

}  // namespace

Result<std::optional<std::uint32_t>> parse_device(std::string_view text) {
  if (text == "cpu") return std::optional<std::uint32_t>();
  std::uint32_t index = 0;
  auto const digits = text.starts_with(prefix) ? text.substr(prefix.size()) : std::string_view();
  auto const [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (!digits.empty() && failure == std::errc() && end == digits.data() + digits.size()) return std::optional(index);
  return Error(GpuErrc::unavailable,
               "'" + std::string(text.substr(0, 40)) + "' is no device: cpu, cuda:0, cuda:1, ...");
}

std::string device_name(std::uint32_t index) { return std::string(prefix) + std::to_string(index); }

Result<bool> wait_for(GpuSession& session, Mark mark, std::chrono::steady_clock::time_point deadline) {
  return wait_until([&session, mark] { return session.reached(mark); }, deadline);
}

GpuUnit::GpuUnit(std::unique_ptr<Gpu> gpu, GpuLimits limits)
    : gpu_(std::move(gpu)), limits_(limits), pinned_(*gpu_, limits.pinned_bytes) {}

Result<std::shared_ptr<GpuArena>> GpuUnit::arena() {
  std::scoped_lock lock(mutex_);
  if (lost_) return Error(GpuErrc::lost, *lost_);
  if (arena_) return arena_;
  auto bytes = limits_.arena_bytes;
  if (bytes == 0) {
    auto const free = gpu_->free_bytes();
    if (!free) return free.error();
    bytes = *free / 2;
  }
  auto made = GpuArena::reserve(*gpu_, bytes);
  if (!made) return made.error();
  arena_ = *made;
  return arena_;
}

std::shared_ptr<GpuArena> GpuUnit::arena_if_any() const {
  std::scoped_lock lock(mutex_);
  return arena_;
}

Result<std::shared_ptr<GpuMemory>> GpuUnit::acquire(std::uint64_t bytes) {
  reap();
  auto const from = arena();
  if (!from) return from.error();
  return (*from)->acquire(bytes);
}

bool GpuUnit::sees(GpuUnit& other) {
  if (&other == this) return true;
  std::scoped_lock lock(seeing_);
  if (auto const known = sees_.find(&other); known != sees_.end()) return known->second;
  auto const seen = gpu_->see(*other.gpu_);
  bool const is_final = seen.has_value() || seen.error().code == GpuErrc::unavailable;
  if (is_final) sees_.emplace(&other, seen.has_value());
  if (seen.has_error()) saw(seen.error());
  return seen.has_value();
}

Result<std::unique_ptr<GpuSession>> GpuUnit::session() {
  {
    std::scoped_lock lock(mutex_);
    if (lost_) return Error(GpuErrc::lost, *lost_);
    if (!idle_sessions_.empty()) {
      auto session = std::move(idle_sessions_.back());
      idle_sessions_.pop_back();
      return session;
    }
  }
  return gpu_->session();
}

void GpuUnit::give_back(std::unique_ptr<GpuSession> session) {
  session->start_over();
  std::scoped_lock lock(mutex_);
  if (idle_sessions_.size() < idle_sessions_max) idle_sessions_.push_back(std::move(session));
}

void GpuUnit::end(std::unique_ptr<GpuSession> session, Error const& why, std::shared_ptr<void const> used) {
  saw(why);
  auto const over = wait_until([&]() -> Result<bool> { return lost() || session->rests(); },
                               std::chrono::steady_clock::now() + patience());
  if (!*over) saw(took_too_long("work"));
  abandon(std::move(session), std::move(used));
}

void GpuUnit::abandon(std::unique_ptr<GpuSession> session, std::shared_ptr<void const> used) {
  {
    std::scoped_lock lock(mutex_);
    abandoned_.push_back({std::move(used), std::move(session)});
  }
  reap();
}

void GpuUnit::reap() {
  std::vector<Abandoned> rested;  // destroyed without the lock
  std::scoped_lock lock(mutex_);
  auto const first = std::partition(abandoned_.begin(), abandoned_.end(),
                                    [](Abandoned const& each) { return !each.session->rests(); });
  std::move(first, abandoned_.end(), std::back_inserter(rested));
  abandoned_.erase(first, abandoned_.end());
}

bool GpuUnit::rests() {
  reap();
  std::scoped_lock lock(lending_, mutex_);
  return abandoned_.empty() && (!proving_ || proving_->rests());
}

Error GpuUnit::took_too_long(std::string_view what) const {
  return {GpuErrc::lost, device_name(gpu_->info().index) + ": " + std::string(what) + " took longer than " +
                             std::to_string(patience().count()) + " ms"};
}

Status GpuUnit::done(GpuSession& session, Mark mark) const {
  auto const reached = wait_for(session, mark, std::chrono::steady_clock::now() + patience());
  if (!reached) return reached.error();
  return *reached ? ok() : Status(took_too_long("a copy"));
}

// Two slots in turn: one is filled or emptied by the host while the device works on the other.
template <class Move>
Status GpuUnit::in_pieces(std::uint64_t bytes, Move const& move) {
  if (auto const why = lost()) return Error(GpuErrc::lost, *why);
  auto first = pinned().take();
  if (!first) return first.error();
  auto second = pinned().take();
  if (!second) return second.error();
  auto const pair = std::make_shared<std::pair<PinnedSlot, PinnedSlot>>(std::move(*first), std::move(*second));
  PinnedSlot* const slots[] = {&pair->first, &pair->second};
  auto queues = session();
  if (!queues) {
    saw(queues.error());
    return queues.error();
  }
  auto const status = move(**queues, slots, bytes);
  count((*queues)->use());
  if (status)
    give_back(std::move(*queues));
  else
    end(std::move(*queues), status.error(), pair);
  return status;
}

Status GpuUnit::upload(std::byte* to, std::span<std::byte const> from) {
  return in_pieces(from.size(), [&](GpuSession& session, PinnedSlot* const* slots, std::uint64_t bytes) {
    Mark marks[2];
    for (std::uint64_t at = 0, n = 0; at < bytes; at += PinnedPool::slot_bytes, ++n) {
      if (auto const free = done(session, marks[n % 2]); !free) return free;
      auto const piece = from.subspan(at).first(std::min(PinnedPool::slot_bytes, bytes - at));
      auto const slot = slots[n % 2]->bytes();
      std::memcpy(slot.data(), piece.data(), piece.size());
      if (auto const queued = session.copy(Lane::in, to + at, slot.data(), piece.size()); !queued) return queued;
      auto const mark = session.mark(Lane::in);
      if (!mark) return Status(mark.error());
      marks[n % 2] = *mark;
    }
    if (auto const first = done(session, marks[0]); !first) return first;
    return done(session, marks[1]);
  });
}

Status GpuUnit::download(std::span<std::byte> to, std::byte const* from) {
  return read({from, to.size()}, [&to](std::span<std::byte const> piece) {
    std::memcpy(to.data(), piece.data(), piece.size());
    to = to.subspan(piece.size());
  });
}

Status GpuUnit::read(std::span<std::byte const> from,
                     std::function<void(std::span<std::byte const> piece)> const& take) {
  return in_pieces(from.size(), [&](GpuSession& session, PinnedSlot* const* slots, std::uint64_t bytes) {
    struct Piece {
      Mark mark;
      std::uint64_t size = 0;
    } pieces[2];
    auto const land = [&](std::uint64_t n) {
      auto& piece = pieces[n % 2];
      if (auto const there = done(session, piece.mark); !there) return there;
      if (piece.size != 0) take(slots[n % 2]->bytes().first(piece.size));
      piece = {};
      return ok();
    };
    std::uint64_t n = 0;
    for (std::uint64_t at = 0; at < bytes; at += PinnedPool::slot_bytes, ++n) {
      if (auto const landed = land(n); !landed) return landed;
      auto const size = std::min(PinnedPool::slot_bytes, bytes - at);
      if (auto const queued = session.copy(Lane::out, slots[n % 2]->bytes().data(), from.data() + at, size); !queued)
        return queued;
      auto const mark = session.mark(Lane::out);
      if (!mark) return Status(mark.error());
      pieces[n % 2] = {*mark, size};
    }
    if (auto const landed = land(n); !landed) return landed;
    return land(n + 1);
  });
}

// Runs work() to queue work on a session's compute lane, and waits for the end.
template <class Work>
Status GpuUnit::compute(Work const& work) {
  auto queues = session();
  if (!queues) {
    saw(queues.error());
    return queues.error();
  }
  auto status = work(**queues);
  if (status) {
    auto const mark = (*queues)->mark(Lane::compute);
    status = mark ? done(**queues, *mark) : Status(mark.error());
  }
  count((*queues)->use());
  if (status)
    give_back(std::move(*queues));
  else
    end(std::move(*queues), status.error());
  return status;
}

Status GpuUnit::copy(std::span<GpuCopy const> copies) {
  return compute([&](GpuSession& session) {
    for (auto const& [to, from, bytes] : copies)
      if (auto const queued = session.copy(Lane::compute, to, from, bytes); !queued) return queued;
    return ok();
  });
}

Status GpuUnit::fold(ReduceOp op, Dtype dtype, ReduceArguments const& arguments, Reducer::How how) {
  return compute([&](GpuSession& session) { return session.fold(op, dtype, arguments, how); });
}

Status GpuUnit::code(std::span<CodeOrder const> orders) {
  return compute([&](GpuSession& session) {
    for (auto const& order : orders)
      if (auto const queued = session.code(order); !queued) return queued;
    return ok();
  });
}

std::optional<std::string> GpuUnit::lost() const {
  std::scoped_lock lock(mutex_);
  return lost_;
}

void GpuUnit::saw(Error const& error) {
  std::scoped_lock lock(mutex_);
  if (error.code == GpuErrc::lost && !lost_) lost_ = error.detail;
}

void GpuUnit::count(GpuUse const& use) {
  std::scoped_lock lock(mutex_);
  add(use_, use);
}

GpuTotals GpuUnit::totals() const {
  std::scoped_lock lock(mutex_);
  GpuTotals totals;
  totals.use = use_;
  totals.pinned_bytes = pinned_.pinned_bytes();
  totals.pinned_limit_bytes = limits_.pinned_bytes;
  if (arena_) {
    totals.arena_bytes = arena_->bytes().size();
    totals.arena_used_bytes = arena_->used_bytes();
  }
  return totals;
}

namespace {

std::vector<std::unique_ptr<GpuUnit>> units_of(std::vector<std::unique_ptr<Gpu>> gpus, GpuLimits limits) {
  std::vector<std::unique_ptr<GpuUnit>> units;
  for (auto& gpu : gpus) units.push_back(std::make_unique<GpuUnit>(std::move(gpu), limits));
  return units;
}

}  // namespace

Gpus::Gpus(FoundGpus found, GpuLimits limits)
    : units_(units_of(std::move(found.gpus), limits)), why_none_(std::move(found.why_none)) {}

Gpus::~Gpus() {
  if (std::ranges::all_of(units_, [](auto const& unit) { return unit->rests(); })) return;
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::unique_ptr<GpuUnit>>;  // never destroyed
  std::scoped_lock lock(mutex);
  for (auto& unit : units_) kept.push_back(std::move(unit));  // a GPU's work may use the memory of others
}

Result<GpuUnit*> Gpus::find(std::uint32_t index) const {
  for (auto const& unit : units_)
    if (unit->gpu().info().index == index) return unit.get();
  std::string there;
  for (auto const& unit : units_) there += (there.empty() ? "" : ", ") + device_name(unit->gpu().info().index);
  return Error(GpuErrc::unavailable,
               "there is no " + device_name(index) + " here: " +
                   (there.empty() ? why_none_ : "there is " + there + (why_none_.empty() ? "" : "; " + why_none_)));
}

GpuUnit* Gpus::find(std::string_view uuid) const {
  for (auto const& unit : units_)
    if (unit->gpu().info().uuid == uuid) return unit.get();
  return nullptr;
}

std::optional<std::string> Gpus::lost() const {
  for (auto const& unit : units_)
    if (auto why = unit->lost()) return why;
  return std::nullopt;
}

}  // namespace chorus::devices
