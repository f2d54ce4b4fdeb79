#include "worker/service/collectives/runs/run_checks.hpp"

#include <algorithm>
#include <utility>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/error_feedback.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/service/operands/fused_adapter.hpp"
#include "worker/service/operands/multi_tensor_adapter.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::service {
namespace {

using http::Checked;
using http::Problem;
using http::ProblemCode;

Problem mismatch(RunOrder const& order, char const* pointer, std::string const& expected, std::string const& found) {
  Problem problem(ProblemCode::mismatch, "tensor " + order.tensor + " on rank " + std::to_string(order.rank) + " is " +
                                             found + ", admitted was " + expected);
  problem.ranks = {order.rank};
  problem.errors.push_back({pointer, "expected " + expected + ", found " + found});
  return problem;
}

std::optional<Problem> check_admitted(RunOrder const& order, tensors::Tensor const& tensor) {
  if (!order.admitted) return std::nullopt;
  auto const& admitted = *order.admitted;
  if (tensor.dtype != admitted.dtype)
    return mismatch(order, "/dtype", std::string(name(admitted.dtype)), std::string(name(tensor.dtype)));
  if (tensor.version != admitted.version)
    return mismatch(order, "/version", "version " + std::to_string(admitted.version),
                    "version " + std::to_string(tensor.version));
  return std::nullopt;
}

std::optional<Problem> check_reduction(RunOrder const& order, Dtype dtype) {
  if (!reduces(order.spec.op) || devices::can_reduce(order.reduce, dtype)) return std::nullopt;
  return Problem(ProblemCode::unsupported, "reduce " + std::string(name(order.reduce)) + " of " +
                                               std::string(name(dtype)) + ": bit operations are for integers");
}

std::optional<Problem> check_compression(RunOrder const& order, Dtype dtype) {
  if (order.error_feedback)
    if (auto const able = check_error_feedback(order.compression, order.brings_several()); !able)
      return invalid_field("/error_feedback", able.error().detail);
  if (!order.compression) return std::nullopt;
  if (order.contributions > 0)
    return invalid_field("/compression", "does not go with avg over several tensors of a worker; sum does");
  auto const algorithm = algorithms::find(order.spec.algorithm);
  if (!algorithm) return invalid_field("/algorithm", algorithm.error().detail);
  auto const able = engine::check_compression(*order.compression, order.reduce, dtype, **algorithm, order.spec);
  if (!able) return invalid_field("/compression", able.error().detail);
  return std::nullopt;
}

}  // namespace

Checked<std::shared_ptr<plan::Program const>> RunChecks::find_program(RunOrder const& order) const {
  auto const algorithm = algorithms::find(order.spec.algorithm);
  if (!algorithm) return invalid_field("/algorithm", algorithm.error().detail);
  auto program = plans_.get(**algorithm, order.spec, order.rank);
  if (!program) {
    auto problem = to_problem(program.error());
    problem.errors.push_back({"/algorithm", program.error().detail});
    return problem;
  }
  return std::move(*program);
}

Checked<RunPart> RunChecks::part_of(RunOrder const& order) const {
  auto program = find_program(order);
  if (!program) return program.error();
  if (auto const status = plan::check(**program, order.sizes); !status)
    return invalid_field(order.sizes.counts.empty() ? "/elements" : "/counts", status.error().detail);
  auto const layouts = plan::layouts(**program, order.sizes);
  RunPart part;
  part.input_elements = plan::input_elements(**program, layouts);
  part.output_elements = plan::output_elements(**program, layouts);
  auto const held = plan::holding(order.spec, order.rank, (*program)->chunks);
  bool const is_barrier = order.spec.op == Op::barrier;
  part.brings = !is_barrier && !held.input.empty();
  part.gets = !is_barrier && !held.output.empty();
  part.program = std::move(*program);
  return part;
}

Checked<std::shared_ptr<InputAdapter>> RunChecks::level_of(RunOrder const& order, RunPart const& part) const {
  if (order.spec.in_place || order.result)
    return invalid_field(order.result ? "/result" : "/in_place",
                         "the results of several tensors are their next versions");
  std::shared_ptr<InputAdapter> level;
  if (order.fused) {
    level = std::make_shared<FusedAdapter>(order);
  } else {
    auto made = MultiTensorAdapter::make(order, store_, nccl_);
    if (!made) return made.error();
    level = std::move(*made);
  }
  if (auto problem = check_reduction(order, level->dtype())) return std::move(*problem);
  if (auto problem = check_compression(order, level->dtype())) return std::move(*problem);
  auto const elements = std::max(part.input_elements, part.output_elements);
  if (level->elements() != elements)
    return mismatch(order, "/elements", std::to_string(elements) + " elements",
                    std::to_string(level->elements()) + " elements");
  return level;
}

std::optional<Problem> RunChecks::refusal(RunOrder const& order) const {
  auto const part = part_of(order);
  if (!part) return part.error();
  if (order.brings_several()) {
    auto const level = level_of(order, *part);
    if (!level) return level.error();
    for (auto const& block : (*level)->blocks())
      if (auto problem = damage_of(*block)) return problem;
    // Other portions come later, but a call that cannot complete must not begin.
    if (order.fused)
      for (auto const& tensor : order.fused->tensors())
        if (auto problem = damage_of(*tensor.data)) return problem;
    return std::nullopt;
  }
  if (!part->brings && !part->overwrites()) return refusal(order, *part, nullptr);
  auto const tensor = store_.get(order.tensor);
  if (!tensor) return to_problem(tensor.error(), {order.rank});
  if (auto problem = damage_of(*tensor->data)) return problem;
  return refusal(order, *part, &*tensor);
}

std::optional<Problem> RunChecks::refusal(RunOrder const& order, RunPart const& part,
                                          tensors::Tensor const* tensor) const {
  auto const dtype = tensor != nullptr ? tensor->dtype : order.admitted ? order.admitted->dtype : Dtype::u8;
  if (auto problem = check_reduction(order, dtype)) return problem;
  if (auto problem = check_compression(order, dtype)) return problem;
  if (tensor != nullptr) {
    if (auto problem = check_admitted(order, *tensor)) return problem;
    auto const expected = part.brings ? part.input_elements : part.output_elements;
    if (tensor->elements() != expected)
      return mismatch(order, "/elements", std::to_string(expected) + " elements",
                      std::to_string(tensor->elements()) + " elements");
    if (part.overwrites() && tensor->elements() != part.output_elements)
      return invalid_field("/in_place", "the result of " + std::string(name(order.spec.op)) + " has " +
                                            std::to_string(part.output_elements) + " elements, the tensor " +
                                            std::to_string(tensor->elements()));
    if (part.overwrites() && order.result) return invalid_field("/in_place", "the result goes to another tensor");
  }
  if (!part.gets || part.overwrites()) return std::nullopt;
  if (order.spec.op != Op::barrier && !order.result &&
      (tensor == nullptr || tensor->elements() != part.output_elements))
    return invalid_field("/result", "is missing: the result has " + std::to_string(part.output_elements) +
                                        " elements, which is not the shape of the tensor");
  if (order.result) {
    auto const count = tensors::element_count(order.result->shape, dtype);
    if (!count) return invalid_field("/result/shape", count.error().detail);
    if (*count != part.output_elements)
      return invalid_field("/result/shape", "holds " + std::to_string(*count) + " elements, the result has " +
                                                std::to_string(part.output_elements));
    return check_home(order, dtype);
  }
  return std::nullopt;
}

// A tensor in a client's region keeps its dtype and shape, which the client knows: only the client may change them.
std::optional<Problem> RunChecks::check_home(RunOrder const& order, Dtype dtype) const {
  auto const& result = *order.result;
  auto const now = store_.get(result.tensor);
  if (!now || now->data->region() == nullptr) return std::nullopt;
  if (now->dtype == dtype && now->shape == result.shape) return damage_of(*now->data);
  auto const form = [](Dtype type, tensors::Shape const& shape) {
    return std::string(name(type)) + "[" + tensors::to_string(shape) + "]";
  };
  return invalid_field(result.tensor == order.tensor ? "/tensor" : "/output",
                       result.tensor + " lies in region " + now->data->region()->name() + " as " +
                           form(now->dtype, now->shape) + ", the result is " + form(dtype, result.shape) +
                           ": name another output");
}

}  // namespace chorus::service
