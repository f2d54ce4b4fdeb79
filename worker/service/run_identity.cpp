#include "worker/service/run_identity.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string>

namespace chorus::service {
namespace {

std::uint64_t hash(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

std::uint64_t local_run_number(std::string_view group, std::uint32_t epoch, std::uint64_t sequence) {
  auto const text = std::string(group) + '\n' + std::to_string(epoch) + '\n' + std::to_string(sequence);
  return hash(text) | (std::uint64_t{1} << 63);
}

std::uint64_t run_fingerprint(plan::Spec const& spec, Dtype dtype, std::uint64_t elements, ReduceOp reduce) {
  return hash(std::to_string(plan::hash(spec)) + '\n' + std::string(name(dtype)) + '\n' + std::to_string(elements) +
              '\n' + std::string(name(reduce)));
}

}  // namespace chorus::service
