#include "worker/memory/pages/errc.hpp"

#include <string>

namespace chorus::memory {
namespace {

class MemoryCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "memory"; }
  std::string message(int value) const override {
    switch (static_cast<MemoryErrc>(value)) {
      case MemoryErrc::unavailable:
        return "shared memory is not available";
      case MemoryErrc::not_shared:
        return "memory is not shared";
      case MemoryErrc::damaged:
        return "shared memory is damaged";
      case MemoryErrc::bad_key:
        return "not the name of a shared memory object";
      case MemoryErrc::out_of_range:
        return "beyond the shared memory object";
      case MemoryErrc::at_ceiling:
        return "no more shared memory is allowed";
    }
    return "unknown memory error";
  }
};

}  // namespace

std::error_category const& memory_category() {
  static MemoryCategory const category;
  return category;
}

}  // namespace chorus::memory
