#include "worker/engine/testing/case.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/plan/program.hpp"
#include "worker/engine/run_identity.hpp"

namespace chorus::engine::testing {
namespace {

// Small enough that sums are exact, and products of up to 16 ranks too.
template <class T>
T value(ReduceOp reduce, plan::Rank rank, std::uint64_t i) {
  if (reduce == ReduceOp::prod) return static_cast<T>((i + rank) % 5 == 0 ? 2 : (i + 3 * rank) % 4 == 0 ? -1 : 1);
  return static_cast<T>(static_cast<std::int64_t>((i * 7 + rank * 13 + i / 11) % 41) - 20);
}

template <class T>
T reduced(ReduceOp reduce, std::uint32_t ranks, std::uint64_t i) {
  auto result = value<T>(reduce, 0, i);
  for (plan::Rank rank = 1; rank < ranks; ++rank) {
    auto const next = value<T>(reduce, rank, i);
    if (reduce == ReduceOp::min)
      result = std::min(result, next);
    else if (reduce == ReduceOp::max)
      result = std::max(result, next);
    else if (reduce == ReduceOp::prod)
      result *= next;
    else
      result += next;
  }
  return reduce == ReduceOp::avg ? result / static_cast<T>(ranks) : result;
}

template <class T>
void append(std::vector<std::byte>& bytes, T x) {
  auto const at = bytes.size();
  bytes.resize(at + sizeof(T));
  std::memcpy(bytes.data() + at, &x, sizeof(T));
}

template <class Function>
auto with_type(Dtype dtype, Function function) {
  switch (dtype) {
    case Dtype::f64:
      return function(double{});
    case Dtype::i64:
      return function(std::int64_t{});
    case Dtype::i32:
      return function(std::int32_t{});
    default:
      return function(float{});
  }
}

}  // namespace

std::string to_string(Case const& c) {
  return std::string(name(c.op)) + " " + std::string(c.algorithm->name) + " root " + std::to_string(c.root) +
         " arity " + std::to_string(c.arity) + " " + std::string(name(c.reduce)) + " " + std::string(name(c.dtype)) +
         "[" + std::to_string(c.elements) + "] " + (c.counts.empty() ? "" : "uneven ") + "segment " +
         std::to_string(c.segment_bytes) + (c.in_place ? " in place" : "");
}

namespace {

plan::Sizes sizes_of(Case const& c, plan::Rank rank, std::uint32_t ranks) {
  plan::Sizes sizes{c.elements, c.counts, {}};
  if (c.op != Op::all_to_all || c.counts.empty()) return sizes;
  for (plan::Rank peer = 0; peer < ranks; ++peer) sizes.counts[peer] = c.counts[(rank + peer) % ranks];
  sizes.receive_counts = sizes.counts;
  return sizes;
}

plan::Spec spec_of(Case const& c, std::uint32_t ranks) {
  return {c.op, std::string(c.algorithm->name), ranks, c.root, c.arity, c.in_place, c.shape};
}

// The elements of a rank's input and output, as (origin, index in the origin's whole vector).
class Elements {
 public:
  Elements(Case const& c, plan::Rank rank, std::uint32_t ranks)
      : case_(c), rank_(rank), ranks_(ranks), held_(plan::holding(spec_of(c, ranks), rank, ranks)) {}

  template <class Use>
  void for_each_input(Use use) const {
    auto const vector = vector_of(rank_);
    for (auto i = vector.begin_of(held_.input.first); i < vector.begin_of(end(held_.input)); ++i) use(rank_, i);
  }

  // For a reduction the origin does not matter.
  template <class Use>
  void for_each_output(Use use) const {
    for (auto block = held_.output.first; block < end(held_.output); ++block) {
      auto const from_root = case_.op == Op::broadcast || case_.op == Op::scatter;
      auto const origin = from_root ? case_.root : block;
      auto const range = case_.op == Op::all_to_all ? vector_of(block).range(rank_) : vector_of(rank_).range(block);
      for (auto i = range.begin; i < range.end; ++i) use(origin, i);
    }
  }

 private:
  static std::uint32_t end(plan::ChunkRange range) { return range.first + range.count; }

  [[nodiscard]] plan::Layout vector_of(plan::Rank rank) const {
    auto const sizes = sizes_of(case_, rank, ranks_);
    return sizes.counts.empty() ? plan::Layout(sizes.elements, ranks_) : plan::Layout(sizes.counts, ranks_);
  }

  Case const& case_;
  plan::Rank rank_;
  std::uint32_t ranks_;
  plan::Holding held_;
};

}  // namespace

Buffer Fleet::allocate(plan::Rank, std::size_t bytes) {
  auto const memory = std::make_shared<std::vector<std::byte>>(bytes);
  return {std::shared_ptr<std::byte>(memory, memory->data()), *memory};
}

Collective::Collective(Fleet& fleet, Case c, std::chrono::steady_clock::time_point now)
    : fleet_(fleet), case_(std::move(c)) {
  auto const ranks = fleet.ranks();
  auto const plan_spec = spec_of(case_, ranks);
  state_->results.resize(ranks);
  state_->inputs.resize(ranks);
  state_->outputs.resize(ranks);
  expected_.resize(ranks);
  for (plan::Rank rank = 0; rank < ranks; ++rank) {
    auto program = std::make_shared<plan::Program>(plan::build(*case_.algorithm, plan_spec, rank).value());
    auto const sizes = sizes_of(case_, rank, ranks);
    auto const layouts = plan::layouts(*program, sizes);
    std::vector<std::byte> input;
    auto& expected = expected_[rank];
    with_type(case_.dtype, [&](auto zero) {
      using T = decltype(zero);
      Elements const elements(case_, rank, ranks);
      elements.for_each_input([&](auto origin, auto i) { append(input, value<T>(case_.reduce, origin, i)); });
      elements.for_each_output([&](auto origin, auto i) {
        append(expected.bytes,
               reduces(case_.op) ? reduced<T>(case_.reduce, ranks, i) : value<T>(case_.reduce, origin, i));
      });
    });
    auto const width = element_bytes(case_.dtype);
    state_->outputs[rank] = fleet.allocate(rank, plan::output_elements(*program, layouts) * width);
    auto const output = state_->outputs[rank].bytes;
    std::fill(output.begin(), output.end(), std::byte{0x5a});
    bool const one_buffer = case_.in_place && !program->input.empty() && !program->output.empty();
    if (one_buffer) {
      auto const held = plan::holding(plan_spec, rank, program->chunks);
      auto const offset = [&](plan::ChunkRange range, plan::ChunkRange memory, plan::Layout const& layout) {
        return (layout.begin_of(range.first) - layout.begin_of(memory.first)) * width;
      };
      std::copy(input.begin(), input.end(),
                output.begin() + static_cast<std::ptrdiff_t>(offset(held.input, program->input, layouts.input)));
      expected.offset = offset(held.output, program->output, layouts.output);
    } else {
      state_->inputs[rank] = fleet.allocate(rank, input.size());
      std::copy(input.begin(), input.end(), state_->inputs[rank].bytes.begin());
    }
    auto& spec = state_->specs.emplace_back();
    spec.run = case_.run;
    spec.epoch = case_.epoch;
    spec.token = 0x746f6b656e;
    spec.description = describe(plan_spec, case_.dtype, sizes, case_.reduce);
    spec.fingerprint = fingerprint(plan_spec, case_.dtype, sizes, case_.reduce);
    spec.program = std::move(program);
    for (plan::Rank r = 0; r < ranks; ++r) spec.members.push_back(fleet.peer(r));
    spec.dtype = case_.dtype;
    spec.reduce = case_.reduce;
    spec.sizes = sizes;
    spec.segment_bytes = case_.segment_bytes;
    spec.window = case_.window;
    spec.deadline = now + case_.timeout;
    spec.output = output;
    spec.input = one_buffer ? output : state_->inputs[rank].bytes;
  }
}

void Collective::start(plan::Rank rank) {
  ++started_;
  auto spec = state_->specs[rank];
  spec.owner = state_;
  fleet_.start(rank, std::move(spec), [state = state_, rank](RunResult result) {
    state->results[rank] = std::move(result);
    ++state->ended;
    state->ended.notify_all();
  });
}

void Collective::start() {
  for (plan::Rank rank = 0; rank < fleet_.ranks(); ++rank) start(rank);
}

bool Collective::finish() { return fleet_.run_until(state_->ended, started_); }

bool Collective::run() {
  start();
  return finish();
}

std::string Collective::wrong(plan::Rank rank) const {
  auto const who = to_string(case_) + " of " + std::to_string(fleet_.ranks()) + ", rank " + std::to_string(rank) + ": ";
  if (!state_->results[rank]) return who + "has not ended";
  if (state_->results[rank]->status.has_error()) return who + state_->results[rank]->status.error().detail;
  auto const& expected = expected_[rank];
  auto const got = state_->specs[rank].output.subspan(expected.offset, expected.bytes.size());
  auto const differs = std::mismatch(got.begin(), got.end(), expected.bytes.begin()).first;
  if (differs != got.end())
    return who + "differs at element " +
           std::to_string(static_cast<std::size_t>(differs - got.begin()) / element_bytes(case_.dtype));
  return {};
}

std::string Collective::wrong() const {
  for (plan::Rank rank = 0; rank < fleet_.ranks(); ++rank)
    if (auto text = wrong(rank); !text.empty()) return text;
  return {};
}

}  // namespace chorus::engine::testing
