#include "worker/api/members/list_calls.hpp"

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "worker/api/errc.hpp"
#include "worker/api/members/call_options.hpp"

namespace chorus::embedded {
namespace {

Error refused(std::string why) { return {WorkerErrc::bad_argument, std::move(why)}; }

// What is wrong with the dtype of a tensor of a list.
Status check_listed(Op op, Dtype dtype, CollectiveOptions const& options) {
  if (auto status = check_reduction(op, options.reduce, dtype); status.has_error()) return status;
  auto const fixed = options.compression ? options.compression->fixed() : std::nullopt;
  if (!fixed || plan::has_codes(dtype, *fixed)) return ok();
  return refused(std::string(chorus::name(dtype)) + " has no codes of " + to_string(*fixed));
}

}  // namespace

Status ListCalls::check(Op op, CollectiveOptions const& options) const {
  if (auto status = check_timeout(options.timeout); status.has_error()) return status;
  if (auto status = check_feedback(options, true); status.has_error()) return status;
  if (is_rooted(op) && options.root >= place_.size)
    return refused("root " + std::to_string(options.root) + " in a group of " + std::to_string(place_.size));
  if (!options.counts.empty() || !options.receive_counts.empty())
    return refused(std::string(chorus::name(op)) + " of a list takes no counts");
  if (options.algorithm == "auto") return ok();
  if (auto const known = algorithms::find(options.algorithm); known.has_error()) return known.error();
  return ok();
}

Status ListCalls::run_list(Op op, bool in_place, CollectiveOptions const& options, RunList const& run) {
  auto const timeout = frame_.meet(options.timeout);
  if (timeout.has_error()) return timeout.error();
  auto const path = group_.path();
  // Counted as one run of all bytes, by the algorithm of the last call that it is made of.
  metrics::FinishedRun finished{op};
  frame_.begun(op);
  auto result = run([&](std::uint64_t elements, Dtype dtype) -> Result<CallOptions> {
    auto const chosen = chooser_.choose(op, elements * element_bytes(dtype), dtype, path, in_place, options);
    if (chosen.has_error()) return chosen.error();
    auto& call = **chosen;
    call.timeout = *timeout;
    finished.algorithm = call.algorithm->name;
    finished.bytes += elements * element_bytes(dtype);
    finished.dtype = dtype;
    finished.compression = plan::format_sent(call.compression, *call.algorithm);
    if (finished.compression)
      finished.wire_bytes += plan::wire_bytes_of(*finished.compression, op, place_.size, {elements, {}, {}});
    return call;
  });
  if (finished.algorithm.empty()) finished.algorithm = "none";
  frame_.count(finished, result);
  return frame_.finish(std::move(result));
}

Status ListCalls::run(Op op, std::span<TensorView const> tensors, CollectiveOptions const& options) {
  if (auto status = check(op, options); status.has_error()) return status;
  std::vector<engine::FusedTensor> list;
  list.reserve(tensors.size());
  for (auto const& tensor : tensors) {
    if (tensor.bytes.size() % element_bytes(tensor.dtype) != 0)
      return refused("a tensor is no whole number of elements");
    if (auto status = check_listed(op, tensor.dtype, options); status.has_error()) return status;
    list.push_back({tensor.bytes, tensor.dtype});
  }
  // Every copy of the root's tensor is the same: a broadcast may list weights that layers share twice.
  if (op != Op::broadcast)
    if (auto status = check_apart({}, tensors); status.has_error()) return status;
  return run_list(op, true, options,
                  [&](engine::ChooseForBucket const& choose) { return fused_.run(op, list, options.reduce, choose); });
}

Status ListCalls::run(Op op, BlockLists const& lists, CollectiveOptions const& options) {
  if (auto status = check(op, options); status.has_error()) return status;
  if (!lists.in_place && lists.inputs.size() != lists.outputs.size())
    return refused(std::string(chorus::name(op)) + " of a list of " + std::to_string(lists.inputs.size()) +
                   " inputs and one of " + std::to_string(lists.outputs.size()) + " outputs");
  std::vector<engine::FusedOperand> list;
  list.reserve(lists.outputs.size());
  for (std::size_t i = 0; i < lists.outputs.size(); ++i) {
    auto const input = lists.in_place ? ConstTensorView() : lists.inputs[i];
    auto const buffers = to_buffers(op, place_, input, lists.outputs[i], lists.in_place, options);
    if (buffers.has_error()) return refused("tensor " + std::to_string(i) + ": " + buffers.error().detail);
    if (auto status = check_listed(op, buffers->dtype, options); status.has_error()) return status;
    list.push_back({buffers->input, buffers->output, buffers->elements, buffers->dtype});
  }
  if (auto status = check_apart(lists.inputs, lists.outputs); status.has_error()) return status;
  return run_list(op, lists.in_place, options, [&](engine::ChooseForBucket const& choose) {
    return fused_blocks_.run(op, list, lists.in_place, options.reduce, choose);
  });
}

}  // namespace chorus::embedded
