#include "collectives/model/shared_memory.hpp"

namespace chorus::model {
namespace {

constexpr std::uint64_t crossing_bytes = 1u << 20;

}  // namespace

std::string_view shared_memory_all_reduce(std::uint32_t ranks, std::uint64_t bytes) {
  return bytes <= crossing_bytes / ranks / ranks ? "mesh" : "allpairs";
}

}  // namespace chorus::model
