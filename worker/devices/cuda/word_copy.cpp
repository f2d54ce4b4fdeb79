#include "worker/devices/cuda/word_copy.hpp"

#include <cstring>
#include <utility>

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::devices {

WordCopy::WordCopy(GpuUnit& unit, PinnedSlot slot, std::unique_ptr<GpuSession> session)
    : unit_(unit),
      until_(std::chrono::steady_clock::now() + patience),
      slot_(std::move(slot)),
      session_(std::move(session)) {}

WordCopy::~WordCopy() {
  if (is_done_) unit_.give_back(std::move(session_));
}

Result<std::unique_ptr<WordCopy>> WordCopy::prepare(GpuUnit& unit) {
  if (auto const why = unit.lost()) return Error(GpuErrc::lost, *why);
  auto slot = unit.pinned().take();
  if (!slot) return slot.error();
  auto session = unit.session();
  if (!session) {
    unit.saw(session.error());
    return session.error();
  }
  return std::unique_ptr<WordCopy>(new WordCopy(unit, std::move(*slot), std::move(*session)));
}

Status WordCopy::queue(Lane lane, std::byte* to, std::byte const* from) {
  if (auto const queued = session_->copy(lane, to, from, sizeof(std::uint64_t)); !queued) return queued;
  auto const mark = session_->mark(lane);
  if (!mark) return mark.error();
  mark_ = *mark;
  return ok();
}

Result<std::unique_ptr<WordCopy>> WordCopy::upload(GpuUnit& unit, std::byte* to, std::uint64_t word) {
  auto copy = prepare(unit);
  if (!copy) return copy.error();
  auto* const from = (*copy)->slot_.bytes().data();
  std::memcpy(from, &word, sizeof word);
  if (auto const queued = (*copy)->queue(Lane::in, to, from); !queued) {
    unit.saw(queued.error());
    return queued.error();
  }
  return copy;
}

Result<std::unique_ptr<WordCopy>> WordCopy::download(GpuUnit& unit, std::byte const* from) {
  auto copy = prepare(unit);
  if (!copy) return copy.error();
  if (auto const queued = (*copy)->queue(Lane::out, (*copy)->slot_.bytes().data(), from); !queued) {
    unit.saw(queued.error());
    return queued.error();
  }
  return copy;
}

Result<bool> WordCopy::is_done() {
  if (is_done_) return true;
  if (auto const why = unit_.lost()) return Error(GpuErrc::lost, *why);
  auto const reached = wait_for(*session_, mark_, until_);
  if (!reached)
    unit_.saw(reached.error());
  else
    is_done_ = *reached;
  return reached;
}

std::uint64_t WordCopy::word() const {
  std::uint64_t word = 0;
  std::memcpy(&word, slot_.bytes().data(), sizeof word);
  return word;
}

}  // namespace chorus::devices
