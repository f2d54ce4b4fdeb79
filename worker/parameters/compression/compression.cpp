#include "worker/parameters/compression/compression.hpp"

namespace chorus::parameters {
namespace {

constexpr std::array<std::string_view, all_compressions.size()> names{"f16", "bf16", "top_k", "two_bit", "int8"};

}  // namespace

std::string_view name(Compression compression) { return names[static_cast<std::size_t>(compression)]; }

std::optional<Compression> parse_compression(std::string_view text) {
  for (auto const compression : all_compressions)
    if (name(compression) == text) return compression;
  return std::nullopt;
}

}  // namespace chorus::parameters
