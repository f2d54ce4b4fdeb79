#include "collectives/model/choice/shared_memory.hpp"

namespace chorus::model {
namespace {

constexpr std::uint64_t crossing_bytes = 4u << 20;
constexpr std::uint64_t inside_bytes = 2048;

}  // namespace

std::string_view shared_memory_all_reduce(std::uint32_t ranks, std::uint64_t bytes, bool in_place) {
  bool const is_short = in_place ? bytes <= inside_bytes : bytes < crossing_bytes / ranks / ranks;
  return is_short ? "mesh" : "allpairs";
}

}  // namespace chorus::model
