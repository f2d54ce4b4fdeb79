#include "worker/api/members/buffers.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "collectives/plan/holding.hpp"
#include "collectives/plan/sizes/layout.hpp"
#include "worker/api/errc.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::embedded {
namespace {

Error bad(std::string detail) { return {WorkerErrc::bad_argument, std::move(detail)}; }

std::string at(Op op, Place place) {
  return std::string(name(op)) + " at rank " + std::to_string(place.rank) + " of " + std::to_string(place.size);
}

constexpr std::uint64_t elements_max = std::uint64_t{1} << 60;

Result<std::uint64_t> sum_of(Op op, std::vector<std::uint64_t> const& counts, std::uint32_t size, char const* what) {
  if (!has_blocks(op) || op == Op::barrier) return bad(std::string(name(op)) + " takes no counts");
  if (counts.size() != size)
    return bad(std::to_string(counts.size()) + " " + what + " for a group of " + std::to_string(size));
  std::uint64_t sum = 0;
  for (auto const count : counts) {
    if (count > elements_max - sum) return bad(std::string(what) + " sum up to more elements than can be");
    sum += count;
  }
  return sum;
}

bool overlap(std::span<std::byte const> a, std::span<std::byte const> b) {
  std::less<std::byte const*> const before;
  return !a.empty() && !b.empty() && before(a.data(), b.data() + b.size()) && before(b.data(), a.data() + a.size());
}

// Of the whole vector, where no counts say so: what every rank can tell from what it has.
std::uint64_t elements_of(Op op, Place place, std::uint64_t input, std::uint64_t output, bool in_place) {
  if (in_place) return output;
  switch (op) {
    case Op::broadcast:
    case Op::all_gather:
      return output;
    case Op::gather:
      return input * place.size;
    case Op::scatter:
      return output * place.size;
    default:
      return input;
  }
}

struct Sizes {
  std::uint64_t input = 0, output = 0;
};

Sizes sizes_of(plan::Spec const& spec, Place place, plan::Layout const& layout, std::uint64_t sent,
               std::uint64_t received) {
  auto const held = plan::memory(spec, place.rank, place.size);
  auto const elements = [&](plan::ChunkRange range) {
    return range.empty() ? 0 : layout.range(range.first, range.count).size();
  };
  if (spec.op == Op::all_to_all) return {sent, received};
  return {elements(held.input), elements(held.output)};
}

}  // namespace

Status check_reduction(Op op, ReduceOp reduce, Dtype dtype) {
  if (!reduces(op) || devices::can_reduce(reduce, dtype)) return ok();
  return bad(std::string(name(reduce)) + " of " + std::string(name(dtype)) + ": bit operations are for integers");
}

Result<Buffers> to_buffers(Op op, Place place, ConstTensorView input, TensorView output, bool in_place,
                           CollectiveOptions const& options) {
  if (is_rooted(op) && options.root >= place.size)
    return bad("root " + std::to_string(options.root) + " in a group of " + std::to_string(place.size));
  plan::Spec const spec{
      .op = op, .algorithm = {}, .ranks = place.size, .root = is_rooted(op) ? options.root : 0, .in_place = in_place};
  auto const held = plan::holding(spec, place.rank, place.size);
  if (held.input.empty()) input = {};
  if (held.output.empty() && !in_place) output = {};
  if (input.bytes.size() % element_bytes(input.dtype) != 0 || output.bytes.size() % element_bytes(output.dtype) != 0)
    return bad("a buffer is no whole number of elements");
  if (!in_place && !held.input.empty() && !held.output.empty() && input.dtype != output.dtype)
    return bad("an input of " + std::string(name(input.dtype)) + " and an output of " +
               std::string(name(output.dtype)));
  Buffers buffers;
  buffers.dtype = in_place || held.input.empty() ? output.dtype : input.dtype;
  buffers.in_place = in_place;
  if (auto const status = check_reduction(op, options.reduce, buffers.dtype); status.has_error()) return status.error();

  auto elements = elements_of(op, place, input.elements(), output.elements(), in_place);
  auto layout = plan::Layout(elements, place.size);
  auto sent = elements, received = op == Op::all_to_all ? layout.range(place.rank).size() * place.size : 0;
  if (in_place) received = elements;
  if (options.counts.empty() && !options.receive_counts.empty()) return bad("receive_counts without counts");
  if (!options.counts.empty()) {
    auto const sum = sum_of(op, options.counts, place.size, "counts");
    if (sum.has_error()) return sum.error();
    elements = sent = *sum;
    layout = plan::Layout(options.counts, place.size);
    if (op == Op::all_to_all) {
      auto const back = sum_of(op, options.receive_counts, place.size, "receive_counts");
      if (back.has_error()) return back.error();
      received = *back;
    } else if (!options.receive_counts.empty()) {
      return bad(std::string(name(op)) + " takes no receive_counts");
    }
  }
  if (op == Op::all_to_all && in_place && (!options.counts.empty() || elements % place.size != 0))
    return bad("all_to_all in place is of equal blocks, not of " + std::to_string(elements) + " elements for " +
               std::to_string(place.size) + " ranks");

  auto const wanted = sizes_of(spec, place, layout, sent, received);
  if (in_place) {
    auto const whole = std::max(wanted.input, wanted.output);
    if (output.elements() != whole)
      return bad(at(op, place) + " needs a tensor of " + std::to_string(whole) + " elements, not " +
                 std::to_string(output.elements()));
    if (!held.input.empty()) buffers.input = output.bytes;
    if (!held.output.empty()) buffers.output = output.bytes;
  } else {
    if (input.elements() != wanted.input || output.elements() != wanted.output)
      return bad(at(op, place) + " needs an input of " + std::to_string(wanted.input) + " elements and an output of " +
                 std::to_string(wanted.output) + ", not " + std::to_string(input.elements()) + " and " +
                 std::to_string(output.elements()));
    if (overlap(input.bytes, output.bytes)) return bad("input and output overlap");
    buffers.input = input.bytes;
    buffers.output = output.bytes;
  }
  buffers.elements = elements;
  bool const differs = op == Op::all_to_all && !options.counts.empty();
  buffers.chosen_by_bytes =
      differs ? std::numeric_limits<std::uint64_t>::max() : elements * element_bytes(buffers.dtype);
  return buffers;
}

Status check_apart(std::span<ConstTensorView const> inputs, std::span<TensorView const> outputs) {
  struct Part {
    std::span<std::byte const> bytes;
    std::size_t tensor;
    bool is_output;
    [[nodiscard]] std::byte const* end() const { return bytes.data() + bytes.size(); }
  };
  std::vector<Part> parts;
  parts.reserve(inputs.size() + outputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) parts.push_back({inputs[i].bytes, i, false});
  for (std::size_t i = 0; i < outputs.size(); ++i) parts.push_back({outputs[i].bytes, i, true});
  std::erase_if(parts, [](Part const& part) { return part.bytes.empty(); });
  std::less<std::byte const*> const before;
  std::ranges::sort(parts, before, [](Part const& part) { return part.bytes.data(); });
  Part const* furthest_input = nullptr;  // of those that begin before, the one that ends last
  Part const* furthest_output = nullptr;
  for (auto const& part : parts) {
    for (auto const* other : {furthest_output, part.is_output ? furthest_input : nullptr})
      if (other != nullptr && before(part.bytes.data(), other->end()))
        return bad("tensors " + std::to_string(std::min(part.tensor, other->tensor)) + " and " +
                   std::to_string(std::max(part.tensor, other->tensor)) + " of the list overlap");
    auto& furthest = part.is_output ? furthest_output : furthest_input;
    if (furthest == nullptr || before(furthest->end(), part.end())) furthest = &part;
  }
  return ok();
}

Result<Buffers> CheckedBuffers::of(Op op, ConstTensorView input, TensorView output, bool in_place,
                                   CollectiveOptions const& options) {
  if (!options.counts.empty() || !options.receive_counts.empty())
    return to_buffers(op, place_, input, output, in_place, options);
  Shape const shape{op,          options.reduce, options.root,       in_place,
                    input.dtype, output.dtype,   input.bytes.size(), output.bytes.size()};
  if (shape_ == shape && (in_place || !overlap(input.bytes, output.bytes))) {
    // Of what a rank does not have there is nothing, wherever it lies.
    auto const read = in_place ? output.bytes.data() : input.bytes.data();
    buffers_.input = {read, buffers_.input.size()};
    buffers_.output = {output.bytes.data(), buffers_.output.size()};
    return buffers_;
  }
  auto const buffers = to_buffers(op, place_, input, output, in_place, options);
  if (buffers.has_error()) return buffers.error();
  shape_ = shape;
  buffers_ = *buffers;
  return buffers_;
}

}  // namespace chorus::embedded
