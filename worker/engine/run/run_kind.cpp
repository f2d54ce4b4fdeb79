#include "worker/engine/run/run_kind.hpp"

#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/engine/run/run.hpp"

namespace chorus::engine {

RunKind::RunKind(RunSpec spec) : spec_(std::move(spec)) {
  CHORUS_ASSERT(spec_.owner == nullptr, "nothing is held for runs that may never be");
}

RunKind::~RunKind() = default;

RunSpec RunKind::of(RunCall const& call) const {
  auto spec = spec_;
  spec.run = call.run;
  spec.input = call.input;
  spec.output = call.output;
  spec.deadline = call.deadline;
  spec.envelope = call.envelope;
  return spec;
}

std::unique_ptr<Run> RunKind::take() { return std::move(kept_); }

void RunKind::keep(std::unique_ptr<Run> run) {
  if (!kept_ && run->is_small()) kept_ = std::move(run);
}

}  // namespace chorus::engine
