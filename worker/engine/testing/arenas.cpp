#include "worker/engine/testing/arenas.hpp"

namespace chorus::engine::testing {

Arenas make_arenas(std::uint32_t ranks, std::uint64_t capacity_bytes) {
  Arenas arenas;
  for (std::uint32_t rank = 0; rank < ranks; ++rank)
    arenas.push_back(
        std::make_shared<memory::Arena>(memory::SharedRegion::create(memory::random_ticket(capacity_bytes)).value()));
  return arenas;
}

Buffer allocate_in(std::shared_ptr<memory::Arena> const& arena, std::size_t bytes) {
  auto const block = arena->allocate(bytes).value();
  return {std::shared_ptr<std::byte>(block.data(), [arena](std::byte* place) { arena->free(place); }), block};
}

}  // namespace chorus::engine::testing
