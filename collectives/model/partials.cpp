#include "collectives/model/partials.hpp"

#include <algorithm>
#include <vector>

#include "collectives/plan/layout.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::model {

std::uint64_t partial_bytes(plan::Algorithm const& algorithm, plan::Spec const& spec, std::uint64_t elements) {
  std::uint64_t most = 0;
  for (plan::Rank const rank : {plan::Rank{0}, spec.ranks / 2, spec.ranks - 1}) {
    auto const program = plan::build(algorithm, spec, rank);
    if (program.has_error()) continue;
    plan::Layout const layout(elements, program->chunks);
    std::vector<bool> output(program->chunks), scratch(program->scratch_chunks);
    for (auto const& i : program->instructions) {
      if (!i.has_wide_result()) continue;
      auto& kept = i.dst == plan::Buffer::output ? output : scratch;
      for (std::uint32_t k = 0; k < i.chunks; ++k) kept[i.dst_chunk + k * i.stride] = true;
    }
    std::uint64_t bytes = 0;
    for (auto const* const kept : {&output, &scratch})
      for (std::uint32_t chunk = 0; chunk < kept->size(); ++chunk)
        if ((*kept)[chunk]) bytes += layout.range(chunk % program->chunks).size() * sizeof(float);
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace chorus::model
