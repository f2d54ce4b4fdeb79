#include "worker/engine/run_identity.hpp"

#include <array>

#include "collectives/plan/digest.hpp"

namespace chorus::engine {

std::uint64_t local_run_number(std::string_view group, std::uint32_t epoch, std::uint64_t sequence) {
  std::array<std::uint64_t, 2> const call{epoch, sequence};
  auto const number = plan::digest(call.data(), sizeof call, plan::digest(group.data(), group.size(), 0));
  return number | std::uint64_t{1} << 63;
}

std::uint64_t fingerprint(plan::Spec const& spec, Dtype dtype, std::uint64_t elements, ReduceOp reduce) {
  std::array<std::uint64_t, 3> const operation{static_cast<std::uint64_t>(dtype), elements,
                                               static_cast<std::uint64_t>(reduce)};
  return plan::digest(operation.data(), sizeof operation, plan::hash(spec));
}

std::string describe(plan::Spec const& spec, Dtype dtype, std::uint64_t elements, ReduceOp reduce) {
  auto text = std::string(name(spec.op)) + ' ' + std::string(name(reduce)) + ' ' + std::string(name(dtype)) + '[' +
              std::to_string(elements) + "] " + spec.algorithm + " of " + std::to_string(spec.ranks);
  if (spec.root != 0) text += " root " + std::to_string(spec.root);
  if (spec.arity != 2) text += " arity " + std::to_string(spec.arity);
  if (spec.in_place) text += " in place";
  return text;
}

}  // namespace chorus::engine
