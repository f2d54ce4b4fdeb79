#include "worker/engine/gpu/borrowed_arenas.hpp"

#include <algorithm>

namespace chorus::engine {

using devices::GpuErrc;

BorrowedArenas::Found BorrowedArenas::find(devices::GpuUnit& reader, Identity const& owner, links::Lend const& lend) {
  for (auto const& known : known_)
    if (known.reader == &reader && known.owner == owner && known.lend == lend) return known.found;
  devices::LentArena const lent{lend.handle, links::uuid_of(lend), lend.bytes, lend.proof_at};
  auto arena = devices::borrow(reader, lent, owner.incarnation);
  Found found;
  if (arena.has_value()) {
    found.arena = std::move(*arena);
  } else {
    auto const code = arena.error().code;
    found.why_not = arena.error().detail;
    found.is_final = code == GpuErrc::unavailable || code == GpuErrc::bad_handle;
  }
  if (arena.has_value() || found.is_final) known_.push_back({&reader, owner, lend, found});
  return found;
}

void BorrowedArenas::forget(Identity const& owner) {
  std::erase_if(known_, [&](Known const& known) { return known.owner == owner; });
}

}  // namespace chorus::engine
