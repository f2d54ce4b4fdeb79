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

template <class T, class Function>
std::vector<std::byte> filled(std::uint64_t elements, Function element) {
  std::vector<std::byte> bytes(elements * sizeof(T));
  for (std::uint64_t i = 0; i < elements; ++i) {
    T const x = element(i);
    std::memcpy(bytes.data() + i * sizeof(T), &x, sizeof(T));
  }
  return bytes;
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
  return std::string(c.algorithm->name) + " root " + std::to_string(c.root) + " arity " + std::to_string(c.arity) +
         " " + std::string(name(c.reduce)) + " " + std::string(name(c.dtype)) + "[" + std::to_string(c.elements) +
         "] segment " + std::to_string(c.segment_bytes) + (c.in_place ? " in place" : "");
}

Collective::Collective(Fleet& fleet, Case c, std::chrono::steady_clock::time_point now) : fleet_(fleet), case_(c) {
  state_->results.resize(fleet.ranks());
  auto const ranks = fleet.ranks();
  expected_ = with_type(c.dtype, [&](auto zero) {
    using T = decltype(zero);
    return filled<T>(c.elements, [&](std::uint64_t i) { return reduced<T>(c.reduce, ranks, i); });
  });
  plan::Spec plan_spec;
  plan_spec.algorithm = c.algorithm->name;
  plan_spec.ranks = ranks;
  plan_spec.root = c.root;
  plan_spec.arity = c.arity;
  plan_spec.in_place = c.in_place;
  for (plan::Rank rank = 0; rank < ranks; ++rank) {
    state_->inputs.push_back(with_type(c.dtype, [&](auto zero) {
      using T = decltype(zero);
      return filled<T>(c.elements, [&](std::uint64_t i) { return value<T>(c.reduce, rank, i); });
    }));
    state_->outputs.emplace_back(c.in_place ? 0 : expected_.size(), std::byte{0x5a});
    auto& spec = state_->specs.emplace_back();
    spec.run = c.run;
    spec.epoch = c.epoch;
    spec.token = 0x746f6b656e;
    spec.description = describe(plan_spec, c.dtype, c.elements, c.reduce);
    spec.fingerprint = fingerprint(plan_spec, c.dtype, c.elements, c.reduce);
    spec.program = std::make_shared<plan::Program>(plan::build(*c.algorithm, plan_spec, rank).value());
    for (plan::Rank r = 0; r < ranks; ++r) spec.members.push_back(fleet.peer(r));
    spec.dtype = c.dtype;
    spec.reduce = c.reduce;
    spec.elements = c.elements;
    spec.segment_bytes = c.segment_bytes;
    spec.window = c.window;
    spec.deadline = now + c.timeout;
  }
  for (plan::Rank rank = 0; rank < ranks; ++rank) {
    state_->specs[rank].input = state_->inputs[rank];
    state_->specs[rank].output = c.in_place ? state_->inputs[rank] : state_->outputs[rank];
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
  auto const got = state_->specs[rank].output;
  auto const differs = std::mismatch(got.begin(), got.end(), expected_.begin()).first;
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
