#include "worker/engine/run/spec_check.hpp"

#include "worker/devices/reduce.hpp"
#include "worker/engine/failure/errc.hpp"

namespace chorus::engine {
namespace {

Error cannot(RunSpec const& spec, std::string why) {
  return {EngineErrc::aborted, "run " + std::to_string(spec.run) + " cannot start: " + std::move(why)};
}

}  // namespace

bool is_in_one_buffer(plan::Program const& program) {
  return program.spec.in_place && !program.input.empty() && !program.output.empty();
}

Status check(RunSpec const& spec) {
  if (!spec.program) return cannot(spec, "it has no program");
  auto const& program = *spec.program;
  if (spec.members.size() != program.spec.ranks || program.rank >= spec.members.size())
    return cannot(spec, std::to_string(spec.members.size()) + " members for a program of " +
                            std::to_string(program.spec.ranks) + " ranks");
  for (std::size_t r = 0; r < spec.members.size(); ++r)
    if (spec.members[r].rank != r) return cannot(spec, "its members are not in rank order");
  if (auto const status = plan::check(program, spec.sizes); status.has_error())
    return cannot(spec, status.error().detail);
  auto const layouts = plan::layouts(program, spec.sizes);
  auto const input_bytes = plan::input_elements(program, layouts) * element_bytes(spec.dtype);
  auto const output_bytes = plan::output_elements(program, layouts) * element_bytes(spec.dtype);
  if (spec.input.size() != input_bytes || spec.output.size() != output_bytes)
    return cannot(spec, "buffers of " + std::to_string(spec.input.size()) + " and " +
                            std::to_string(spec.output.size()) + " bytes for " + std::to_string(input_bytes) + " and " +
                            std::to_string(output_bytes));
  if (is_in_one_buffer(program) && spec.input.data() != spec.output.data()) return cannot(spec, "it is not in place");
  if (reduces(program.spec.op) && !devices::can_reduce(spec.reduce, spec.dtype))
    return cannot(spec, std::string(name(spec.reduce)) + " of " + std::string(name(spec.dtype)) +
                            ": bit operations are for integers");
  bool const is_wide = spec.dtype == Dtype::f32 || spec.dtype == Dtype::f64;
  if (spec.codes && (!is_wide || spec.gpu != nullptr)) return cannot(spec, "codes are of f32 or f64 in host memory");
  return ok();
}

}  // namespace chorus::engine
