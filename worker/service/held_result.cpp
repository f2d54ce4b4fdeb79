#include "worker/service/held_result.hpp"

#include "collectives/core/assert.hpp"

namespace chorus::service {

HeldResult HeldResult::unchanged(std::uint64_t version) {
  HeldResult held;
  held.held_ = Unchanged{version};
  return held;
}

Result<std::uint64_t> HeldResult::commit(tensors::Store& store) {
  CHORUS_ASSERT(!empty(), "a result is committed once");
  auto held = std::exchange(held_, std::monostate());
  if (auto const* overwritten = std::get_if<std::shared_ptr<tensors::Store::Exclusive>>(&held))
    return (*overwritten)->release_changed();
  if (auto const* unchanged = std::get_if<Unchanged>(&held)) return unchanged->version;
  return store.put_all(std::move(std::get<Beside>(held).versions));
}

void HeldResult::drop() {
  if (auto const* overwritten = std::get_if<std::shared_ptr<tensors::Store::Exclusive>>(&held_))
    (*overwritten)->release_changed();
  held_ = std::monostate();
}

}  // namespace chorus::service
