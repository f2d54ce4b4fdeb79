#include "worker/engine/testing/cases/case.hpp"

#include <algorithm>

#include "collectives/plan/program.hpp"
#include "worker/engine/testing/cases/exact.hpp"
#include "worker/engine/trace/run_identity.hpp"

namespace chorus::engine::testing {
std::string to_string(Case const& c) {
  return std::string(name(c.op)) + " " + std::string(c.algorithm->name) + " root " + std::to_string(c.root) +
         " arity " + std::to_string(c.arity) + " " + std::string(name(c.reduce)) + " " + std::string(name(c.dtype)) +
         "[" + std::to_string(c.elements) + "] " + (c.counts.empty() ? "" : "uneven ") + "segment " +
         std::to_string(c.segment_bytes) + (c.in_place ? " in place" : "") + (c.by_position.empty() ? "" : " listed");
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
  return {c.op, std::string(c.algorithm->name), ranks, c.root, c.arity, c.in_place, c.shape, c.by_position};
}

// Returns the blocks that a rank holds; they follow ranks, not positions.
plan::Holding blocks_held(Case const& c, plan::Rank rank, std::uint32_t ranks) {
  auto spec = spec_of(c, ranks);
  spec.by_position.clear();
  return plan::holding(spec, rank, ranks);
}

// Returns the blocks of a rank's whole vector: of its input, or of its part of the result.
plan::Layout vector_of(Case const& c, plan::Rank rank, std::uint32_t ranks) {
  auto const sizes = sizes_of(c, rank, ranks);
  return sizes.counts.empty() ? plan::Layout(sizes.elements, ranks) : plan::Layout(sizes.counts, ranks);
}

// The whole vectors of all ranks, and their reduction.
class Vectors {
 public:
  using Bytes = std::vector<std::byte>;

  Vectors(Case const& c, std::uint32_t ranks) : case_(c), ranks_(ranks), width_(element_bytes(c.dtype)) {
    for (plan::Rank rank = 0; rank < ranks; ++rank) {
      layouts_.push_back(vector_of(c, rank, ranks));
      values_.push_back(exact_values(c.dtype, c.reduce, rank, layouts_.back().elements()));
    }
    if (reduces(c.op)) result_ = exact_results(c.dtype, c.reduce, ranks, layouts_.front().elements());
  }

  [[nodiscard]] Bytes input(plan::Rank rank) const {
    Bytes bytes;
    auto const held = blocks_held(case_, rank, ranks_).input;
    append(bytes, values_[rank], layouts_[rank].range(held.first, held.count));
    return bytes;
  }

  [[nodiscard]] Bytes output(plan::Rank rank) const {
    Bytes bytes;
    auto const held = blocks_held(case_, rank, ranks_).output;
    for (auto block = held.first; block < held.first + held.count; ++block) {
      auto const from_root = case_.op == Op::broadcast || case_.op == Op::scatter;
      auto const origin = from_root ? case_.root : block;
      auto const range = case_.op == Op::all_to_all ? layouts_[block].range(rank) : layouts_[rank].range(block);
      append(bytes, reduces(case_.op) ? result_ : values_[origin], range);
    }
    return bytes;
  }

 private:
  void append(Bytes& bytes, Bytes const& vector, plan::ElementRange range) const {
    auto const at = [&](std::uint64_t element) {
      return vector.begin() + static_cast<std::ptrdiff_t>(element * width_);
    };
    bytes.insert(bytes.end(), at(range.begin), at(range.end));
  }

  Case const& case_;
  std::uint32_t ranks_;
  std::size_t width_;
  std::vector<plan::Layout> layouts_;
  std::vector<Bytes> values_;
  Bytes result_;
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
  Vectors const vectors(case_, ranks);
  for (plan::Rank rank = 0; rank < ranks; ++rank) {
    auto program = std::make_shared<plan::Program>(plan::build(*case_.algorithm, plan_spec, rank).value());
    auto const sizes = sizes_of(case_, rank, ranks);
    auto const layouts = plan::layouts(*program, sizes);
    auto const input = vectors.input(rank);
    auto& expected = expected_[rank];
    expected.bytes = vectors.output(rank);
    auto const width = element_bytes(case_.dtype);
    state_->outputs[rank] = fleet.allocate(rank, plan::output_elements(*program, layouts) * width);
    auto const output = state_->outputs[rank].bytes;
    std::fill(output.begin(), output.end(), std::byte{0x5a});
    bool const one_buffer = case_.in_place && !program->input.empty() && !program->output.empty();
    if (one_buffer) {
      auto const held = plan::holding(plan_spec, rank, program->chunks);
      auto const offset = [&](plan::ChunkRange range, plan::ChunkRange memory, plan::Layout const& layout) {
        bool const is_part = range.count != memory.count;
        return is_part ? layout.piece(range.first, range.count).begin * width : 0;
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
    spec.output = state_->outputs[rank].for_engine();
    spec.input = one_buffer ? spec.output : state_->inputs[rank].for_engine();
    spec.gpu = fleet.gpu(rank);
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
  auto const got = state_->outputs[rank].bytes.subspan(expected.offset, expected.bytes.size());
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
