#include "worker/engine/gpu/borrowed_arenas.hpp"

#include <algorithm>
#include <utility>

namespace chorus::engine {

using devices::Borrowing;
using devices::GpuErrc;

BorrowedArenas::Found BorrowedArenas::find(devices::GpuUnit& reader, Identity const& owner, links::Lend const& lend,
                                           TimePoint now) {
  reap();
  auto* const known = know(reader, owner, lend);
  if (known == nullptr) return {nullptr, "its GPU has not come to reading the proofs of others yet", false};
  bool const is_decided = known->found.arena != nullptr || known->found.is_final;
  if (!is_decided && (known->under_way || now >= known->again_at)) go_on(*known, now);
  return known->found;
}

BorrowedArenas::Known* BorrowedArenas::know(devices::GpuUnit& reader, Identity const& owner, links::Lend const& lend) {
  for (auto& known : known_)
    if (known.reader == &reader && known.owner == owner && known.lend == lend) return &known;
  auto const is_unmapped = [](Known const& known) { return known.found.arena == nullptr; };
  auto const is_of_no_use = [&](Known const& known) { return is_unmapped(known) && !known.under_way; };
  if (std::count_if(known_.begin(), known_.end(), is_unmapped) >= static_cast<std::ptrdiff_t>(unmapped_max)) {
    auto const oldest = std::find_if(known_.begin(), known_.end(), is_of_no_use);
    if (oldest == known_.end()) return nullptr;
    known_.erase(oldest);
  }
  auto& known = known_.emplace_back();
  known.reader = &reader;
  known.owner = owner;
  known.lend = lend;
  return &known;
}

void BorrowedArenas::go_on(Known& known, TimePoint now) {
  auto const failed = [&known, now](Error const& why) {
    known.found.why_not = why.detail;
    known.found.is_final = why.code == GpuErrc::unavailable || why.code == GpuErrc::bad_handle;
    known.again_at = now + pause;
  };
  if (!known.under_way) {
    devices::LentArena const lent{known.lend.handle, links::uuid_of(known.lend), known.lend.bytes, known.lend.proof_at};
    auto begun = Borrowing::begin(*known.reader, lent, known.owner.incarnation);
    if (!begun) return failed(begun.error());
    known.under_way = std::move(*begun);
  }
  auto const arena = known.under_way->arena();
  known.found.why_not = "its GPU has not come to reading the proof yet";
  if (arena.has_value() && *arena == nullptr) return;
  auto ended = std::move(known.under_way);
  if (!arena) {
    if (known.reader->lost()) leaving_.push_back(std::move(ended));  // destroying it might block for ever
    return failed(arena.error());
  }
  known.found.arena = *arena;
  known.found.why_not.clear();
}

void BorrowedArenas::forget(Identity const& owner) {
  for (auto& known : known_)
    if (known.owner == owner && known.under_way) leaving_.push_back(std::move(known.under_way));
  std::erase_if(known_, [&](Known const& known) { return known.owner == owner; });
  reap();
}

void BorrowedArenas::reap() {
  std::erase_if(leaving_, [](auto const& borrowing) { return borrowing->rests(); });
}

}  // namespace chorus::engine
