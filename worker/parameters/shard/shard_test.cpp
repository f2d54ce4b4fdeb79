#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "http/json.hpp"
#include "worker/devices/fold.hpp"
#include "worker/parameters/shard/shard.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

using testing::plain;

tensors::Pool& pool() {
  static tensors::Pool shared(64 << 20, 256 << 20);
  return shared;
}

std::unique_ptr<Shard> make(api::ShardAssignment const& assignment) {
  auto spec = ShardSpec::from(assignment);
  REQUIRE(spec.has_value());
  auto shard = Shard::make(std::move(*spec), pool());
  REQUIRE(shard.has_value());
  return std::move(*shard);
}

std::shared_ptr<tensors::Block> block_of(void const* data, std::size_t bytes) {
  auto block = pool().acquire(bytes).value();
  if (bytes != 0) std::memcpy(block->data(), data, bytes);
  return block;
}

Push gradient(std::string client, std::uint64_t sequence, std::vector<float> const& values,
              std::optional<std::uint64_t> clock = std::nullopt) {
  Push push;
  push.client = {std::move(client), 0};
  push.sequence = sequence;
  push.clock = clock;
  push.data = block_of(values.data(), values.size() * sizeof(float));
  return push;
}

Push rows(std::string client, std::uint64_t sequence, std::vector<std::uint64_t> const& numbers,
          std::vector<float> const& values) {
  std::vector<std::byte> bytes(numbers.size() * 8 + values.size() * 4);
  if (!numbers.empty()) std::memcpy(bytes.data(), numbers.data(), numbers.size() * 8);
  if (!values.empty()) std::memcpy(bytes.data() + numbers.size() * 8, values.data(), values.size() * 4);
  Push push;
  push.kind = PushKind::rows;
  push.client = {std::move(client), 0};
  push.sequence = sequence;
  push.rows = numbers.size();
  push.data = block_of(bytes.data(), bytes.size());
  return push;
}

void compute(Shard::Change& change, std::uint64_t each) {
  REQUIRE(change.begin().has_value());
  for (std::uint64_t at = 0; at < change.elements(); at += each)
    change.compute(at, std::min(each, change.elements() - at));
}

// Takes a push as a server does, whose threads take so many elements at once. False: it waits.
bool apply(Shard& shard, Push const& push, std::uint64_t each = 1 << 16) {
  REQUIRE_FALSE(shard.refuse(push).has_value());
  auto const turn = shard.turn(push);
  REQUIRE(turn.has_value());
  if (*turn != Shard::Turn::now) return *turn == Shard::Turn::seen;
  auto change = shard.prepare(push);
  REQUIRE(change.has_value());
  compute(*change, each);
  shard.finish(std::move(*change));
  return true;
}

std::vector<float> values(Shard const& shard) {
  auto const block = shard.values();
  std::vector<float> all(block->size_bytes() / sizeof(float));
  std::memcpy(all.data(), block->data(), block->size_bytes());
  return all;
}

http::ProblemCode refusal(Shard& shard, Push const& push) {
  if (auto const problem = shard.refuse(push)) return problem->code;
  auto const turn = shard.turn(push);
  REQUIRE(turn.has_error());
  return turn.error().code;
}

std::unique_ptr<Shard> copy_of(Shard& shard, api::ShardAssignment const& assignment, bool between_rounds = false) {
  auto copy = make(assignment);
  auto image = shard.image();
  REQUIRE(image.has_value());
  if (between_rounds) leave_open_round(*image);
  for (auto const& array : image->arrays) {
    auto const place = copy->place_for(array.name, array.content.bytes.size());
    REQUIRE(place.size() == array.content.bytes.size());
    if (!place.empty()) std::memcpy(place.data(), array.content.bytes.data(), place.size());
  }
  REQUIRE(copy->restore(image->state));
  return copy;
}

}  // namespace

TEST_CASE("a push adds to the values, once") {
  auto const shard = make(plain({3}));
  CHECK(apply(*shard, gradient("a", 0, {1, 2, 3})));
  CHECK(apply(*shard, gradient("a", 0, {1, 2, 3})));
  CHECK(values(*shard) == std::vector<float>{1, 2, 3});
  CHECK(shard->version() == 1);
  CHECK_FALSE(apply(*shard, gradient("a", 2, {1, 1, 1})));
  CHECK(apply(*shard, gradient("a", 1, {1, 1, 1})));
  CHECK(apply(*shard, gradient("a", 2, {1, 1, 1})));
  CHECK(values(*shard) == std::vector<float>{3, 4, 5});
}

TEST_CASE("what a reader holds stays as it was, and nothing is copied when nobody reads") {
  auto const shard = make(plain({4}));
  apply(*shard, gradient("a", 0, {1, 1, 1, 1}));
  auto const* const place = shard->values()->data();
  apply(*shard, gradient("a", 1, {1, 1, 1, 1}));
  CHECK(shard->values()->data() == place);
  auto const held = shard->values();
  apply(*shard, gradient("a", 2, {1, 1, 1, 1}));
  CHECK(reinterpret_cast<float const*>(held->data())[0] == 2);
  CHECK(values(*shard)[0] == 3);
}

TEST_CASE("a push of a wrong length, without a clock, or of a stranger, changes nothing") {
  auto assignment = plain({3});
  CHECK(refusal(*make(assignment), gradient("a", 0, {1, 2})) == http::ProblemCode::length_mismatch);
  assignment.parameter.staleness = 1;
  assignment.parameter.clients = {"a", "b"};
  auto const shard = make(assignment);
  CHECK(refusal(*shard, gradient("a", 0, {1, 2, 3})) == http::ProblemCode::bad_request);
  CHECK(refusal(*shard, gradient("x", 0, {1, 2, 3}, 0)) == http::ProblemCode::bad_request);
  CHECK(apply(*shard, gradient("a", 0, {1, 2, 3}, 0)));
  CHECK(refusal(*shard, gradient("a", 1, {1, 2, 3}, 0)) == http::ProblemCode::out_of_order);
  CHECK(shard->version() == 1);
}

TEST_CASE("staleness 0: the version moves when everybody has pushed, to the bits of a sum in the clients' order") {
  std::vector<std::string> const clients{"a", "b", "c", "d"};
  std::mt19937 random(7);
  std::normal_distribution<float> draw(0, 1000);
  auto assignment = plain({257});
  assignment.parameter.staleness = 0;
  assignment.parameter.clients = clients;
  auto const shard = make(assignment);
  std::vector<float> expected(257);
  for (std::uint64_t clock = 0; clock < 20; ++clock) {
    std::vector<std::vector<float>> gradients(clients.size(), std::vector<float>(257));
    for (auto& one : gradients)
      for (auto& element : one) element = draw(random);
    std::vector<float> sum(257);
    std::vector<std::byte const*> sources;
    for (auto const& one : gradients) sources.push_back(reinterpret_cast<std::byte const*>(one.data()));
    auto* const destination = reinterpret_cast<std::byte*>(sum.data());
    devices::Folder(ReduceOp::sum, Dtype::f32).run({sources.data(), 4, &destination, 1, 257}, {});
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += sum[i];

    std::vector<std::size_t> order{0, 1, 2, 3};
    std::ranges::shuffle(order, random);
    for (auto const who : order) {
      CHECK(shard->version() == clock);
      CHECK(apply(*shard, gradient(clients[who], clock, gradients[who], clock)));
      CHECK_FALSE(shard->clocks().is_open(clock + 2));
    }
    CHECK(shard->version() == clock + 1);
    REQUIRE(values(*shard) == expected);
  }
}

TEST_CASE("staleness 0: avg divides, and a push for the next round waits") {
  auto assignment = plain({1});
  assignment.parameter.staleness = 0;
  assignment.parameter.reduce = "avg";
  assignment.parameter.clients = {"a", "b"};
  auto const shard = make(assignment);
  CHECK(apply(*shard, gradient("a", 0, {1}, 0)));
  CHECK_FALSE(apply(*shard, gradient("a", 1, {10}, 1)));
  CHECK(shard->why_later(gradient("a", 1, {10}, 1)) == "clock 1 waits for b");
  CHECK(apply(*shard, gradient("b", 0, {3}, 0)));
  CHECK(values(*shard) == std::vector<float>{2});
  CHECK(apply(*shard, gradient("a", 1, {10}, 1)));
}

TEST_CASE("a client that leaves is waited for no longer, and a round that waited for nobody else ends") {
  auto assignment = plain({1});
  assignment.parameter.staleness = 0;
  assignment.parameter.clients = {"a", "b", "c"};
  auto const shard = make(assignment);
  apply(*shard, gradient("a", 0, {1}, 0));
  apply(*shard, gradient("b", 0, {2}, 0));
  Push change;
  change.kind = PushKind::clients;
  change.clients = {"a", "b"};
  auto prepared = shard->prepare(change);
  REQUIRE(prepared.has_value());
  compute(*prepared, 1);
  shard->finish(std::move(*prepared));
  CHECK(values(*shard) == std::vector<float>{3});
  CHECK(shard->version() == 1);
  CHECK(apply(*shard, gradient("a", 1, {1}, 1)));
  CHECK(apply(*shard, gradient("b", 1, {1}, 1)));
  CHECK(shard->version() == 2);
}

TEST_CASE("rows move alone, and repeated ones are summed") {
  auto const shard = make(plain({5, 2}));
  CHECK(apply(*shard, rows("a", 0, {1, 3, 3}, {1, 2, 10, 20, 100, 200})));
  CHECK(values(*shard) == std::vector<float>{0, 0, 1, 2, 0, 0, 110, 220, 0, 0});
  CHECK(apply(*shard, rows("a", 1, {}, {})));
  CHECK(shard->window().next_sequence({"a", 0}) == 2);
  CHECK(refusal(*shard, rows("a", 2, {3, 1}, {1, 1, 1, 1})) == http::ProblemCode::invalid_field);
  CHECK(refusal(*shard, rows("a", 2, {5}, {1, 1})) == http::ProblemCode::invalid_field);
  CHECK(refusal(*shard, rows("a", 2, {1}, {1, 1, 1})) == http::ProblemCode::length_mismatch);
}

TEST_CASE("rows of a shard that does not begin with the first") {
  auto assignment = plain({10, 2});
  assignment.begin = 6;
  assignment.end = 12;
  auto const shard = make(assignment);
  CHECK(apply(*shard, rows("a", 0, {4, 5}, {1, 2, 3, 4})));
  CHECK(values(*shard) == std::vector<float>{0, 0, 1, 2, 3, 4});
  CHECK(refusal(*shard, rows("a", 1, {2}, {1, 2})) == http::ProblemCode::invalid_field);
}

TEST_CASE("a value replaces all elements and is a version of its own") {
  auto const shard = make(plain({2}));
  apply(*shard, gradient("a", 0, {1, 1}));
  auto push = gradient("admin", 0, {7, 8});
  push.kind = PushKind::value;
  CHECK(apply(*shard, push));
  CHECK(values(*shard) == std::vector<float>{7, 8});
  CHECK(shard->version() == 2);
}

TEST_CASE("the bits do not depend on the parts in which a push is computed, in rounds or not, clipped or not") {
  std::vector<float> values_pushed(1001);
  for (std::size_t i = 0; i < values_pushed.size(); ++i)
    values_pushed[i] = std::sin(static_cast<float>(i)) * static_cast<float>(i % 7);
  for (std::int64_t const staleness : {-1, 0})
    for (auto const* const optimizer : {"none", "sgd", "momentum", "nesterov", "adagrad", "adam", "adamw"})
      for (bool const is_clipped : {false, true}) {
        if (is_clipped && std::string_view(optimizer) == "none") continue;
        CAPTURE(optimizer);
        auto assignment = plain({1001});
        assignment.parameter.staleness = staleness;
        if (staleness == 0) assignment.parameter.clients = {"a", "b"};
        assignment.parameter.optimizer.name = optimizer;
        if (is_clipped) assignment.parameter.optimizer.clip_norm = 3;
        auto const whole = make(assignment), in_parts = make(assignment);
        for (std::uint64_t clock = 0; clock < 3; ++clock)
          for (auto const* const client : {"a", "b"}) {
            auto const reader = clock == 1 ? in_parts->values() : nullptr;  // the next values are written elsewhere
            apply(*whole, gradient(client, clock, values_pushed, clock));
            apply(*in_parts, gradient(client, clock, values_pushed, clock), 13);
          }
        CHECK(whole->version() == (staleness == 0 ? 3 : 6));
        CHECK(values(*in_parts) == values(*whole));
      }
}

TEST_CASE("a copy goes on as the shard itself would, in the middle of a round, with any optimizer") {
  for (auto const* const optimizer : {"none", "momentum", "adam"}) {
    CAPTURE(optimizer);
    auto assignment = plain({3, 2});
    assignment.parameter.staleness = 0;
    assignment.parameter.clients = {"a", "b"};
    assignment.parameter.optimizer.name = optimizer;
    auto const shard = make(assignment);
    std::vector<float> const one{1, -2, 3, -4, 5, -6};
    for (std::uint64_t clock = 0; clock < 3; ++clock) {
      apply(*shard, gradient("a", clock, one, clock));
      apply(*shard, gradient("b", clock, one, clock));
    }
    apply(*shard, gradient("b", 3, one, 3));
    auto const copy = copy_of(*shard, assignment);
    CHECK(copy->position() == shard->position());
    CHECK(apply(*copy, gradient("b", 3, one, 3)));
    for (auto* const which : {shard.get(), copy.get()}) CHECK(apply(*which, gradient("a", 3, one, 3)));
    CHECK(copy->version() == shard->version());
    CHECK(values(*copy) == values(*shard));
  }
}

TEST_CASE("a copy without the open round is the shard at the end of the last one, and takes the round's pushes again") {
  auto assignment = plain({2});
  assignment.parameter.staleness = 0;
  assignment.parameter.clients = {"a", "b", "c"};
  auto const shard = make(assignment);
  for (auto const* const client : {"a", "b", "c"}) apply(*shard, gradient(client, 0, {1, 2}, 0));
  auto const before = shard->state();
  apply(*shard, gradient("c", 1, {1, 2}, 1));
  apply(*shard, gradient("a", 1, {1, 2}, 1));
  auto const copy = copy_of(*shard, assignment, true);
  CHECK(http::encode(copy->state()) == http::encode(before));
  CHECK(values(*copy) == values(*shard));
  for (auto const* const client : {"b", "a", "c"}) CHECK(apply(*copy, gradient(client, 1, {1, 2}, 1)));
  CHECK(values(*copy) == std::vector<float>{6, 12});
  // A first round that nobody has ended leaves no client behind.
  auto const fresh = make(assignment);
  apply(*fresh, gradient("a", 0, {1, 2}, 0));
  CHECK(copy_of(*fresh, assignment, true)->state().clients.empty());
}

TEST_CASE("a state that does not fit is refused") {
  auto const shard = make(plain({2}));
  CHECK(shard->place_for("values", 9).empty());
  CHECK(shard->place_for("velocity", 8).empty());
  api::ShardState state;
  state.held.push_back({"a", 0, "f32", std::nullopt});
  CHECK_FALSE(shard->restore(state));
  state.held.clear();
  state.clients.push_back({"a", "no number", 0});
  CHECK_FALSE(shard->restore(state));
}

TEST_CASE("parameters of no element, of one, and of every dtype") {
  for (auto const dtype : all_dtypes) {
    auto assignment = plain({1});
    assignment.parameter.dtype = std::string(name(dtype));
    auto const shard = make(assignment);
    Push push;
    push.client = {"a", 0};
    push.dtype = dtype;
    std::uint64_t const zeros = 0;
    push.data = block_of(&zeros, element_bytes(dtype));
    CHECK(apply(*shard, push));
    CHECK(shard->version() == 1);
  }
  auto const empty = make(plain({0}));
  CHECK(apply(*empty, gradient("a", 0, {})));
  CHECK(empty->version() == 1);
}

namespace {

api::ShardAssignment lazy(std::uint64_t most, std::string optimizer = "none") {
  auto assignment = plain({1'000'000'000'000, 2});
  assignment.parameter.lazy_rows = most;
  assignment.parameter.initializer.name = "uniform";
  assignment.parameter.initializer.seed = 7;
  assignment.parameter.optimizer.name = std::move(optimizer);
  return assignment;
}

std::vector<float> rows_at(Shard const& shard, std::vector<std::uint64_t> const& numbers) {
  std::vector<float> all(2 * numbers.size());
  shard.copy_rows(numbers, std::as_writable_bytes(std::span(all)));
  return all;
}

}  // namespace

TEST_CASE("a row that is created lazily has its initial values, and memory with its first push alone") {
  auto const shard = make(lazy(3));
  auto const initial = rows_at(*shard, {5, 999'999'999'999});
  CHECK(initial[0] != initial[2]);
  CHECK(shard->rows() == 0);
  CHECK(shard->value_bytes() == 0);
  CHECK(apply(*shard, rows("a", 0, {5}, {1, 2})));
  CHECK(shard->rows() == 1);
  CHECK(shard->value_bytes() == 8);
  CHECK(rows_at(*shard, {5, 999'999'999'999}) ==
        std::vector<float>{initial[0] + 1, initial[1] + 2, initial[2], initial[3]});
}

TEST_CASE("no more rows are created than lazy_rows, and those that exist go on") {
  auto const shard = make(lazy(3));
  CHECK(apply(*shard, rows("a", 0, {1, 2, 2, 3}, {1, 1, 1, 1, 1, 1, 1, 1})));
  CHECK(shard->rows() == 3);
  CHECK(refusal(*shard, rows("a", 1, {3, 4}, {1, 1, 1, 1})) == http::ProblemCode::rows_exhausted);
  CHECK(apply(*shard, rows("a", 1, {1, 3}, {1, 1, 1, 1})));
  CHECK(refusal(*shard, gradient("a", 2, {1, 1})) == http::ProblemCode::unsupported);
}

TEST_CASE("rows that are created lazily are stepped as those that all exist, to the bit") {
  auto few = plain({100, 2});
  few.parameter.initializer.name = "normal";
  few.parameter.initializer.seed = 3;
  few.parameter.optimizer.name = "adam";
  auto const dense = make(few);
  few.parameter.lazy_rows = 100;
  auto const created = make(few);
  std::mt19937 draw(1);
  std::vector<std::uint64_t> numbers(100);
  std::iota(numbers.begin(), numbers.end(), 0);
  for (std::uint64_t i = 0; i < 60; ++i) {
    std::vector<std::uint64_t> some;
    for (int k = 0; k < 4; ++k) some.push_back(draw() % 100);
    std::ranges::sort(some);
    std::vector<float> gradients(8);
    for (auto& one : gradients) one = static_cast<float>(draw() % 17) - 8;
    CHECK(apply(*dense, rows("a", i, some, gradients)));
    CHECK(apply(*created, rows("a", i, some, gradients)));
    REQUIRE(rows_at(*dense, numbers) == rows_at(*created, numbers));
  }
}

TEST_CASE("what a reader holds of lazily created rows stays, and the copies of a shard have the same bits") {
  auto const assignment = lazy(1000, "momentum");
  auto const shard = make(assignment);
  for (std::uint64_t i = 0; i < 20; ++i) {
    auto const held = i % 3 == 0 ? shard->values() : nullptr;
    CHECK(apply(*shard, rows("a", i, {900 - 7 * i, 1000 + i}, {1, 2, 3, 4})));
  }
  auto const copy = copy_of(*shard, assignment);
  std::vector<std::uint64_t> numbers(2000);
  std::iota(numbers.begin(), numbers.end(), 0);
  CHECK(copy->rows() == 40);
  CHECK(rows_at(*copy, numbers) == rows_at(*shard, numbers));
  CHECK(apply(*shard, rows("a", 20, {900, 1500}, {1, 2, 3, 4})));
  CHECK(apply(*copy, rows("a", 20, {900, 1500}, {1, 2, 3, 4})));
  CHECK(rows_at(*copy, numbers) == rows_at(*shard, numbers));
}

TEST_CASE("an image with a row twice, or of another place, is refused") {
  auto const assignment = lazy(10);
  auto const shard = make(assignment);
  CHECK(apply(*shard, rows("a", 0, {1, 2}, {1, 1, 1, 1})));
  auto const image = shard->image().value();
  for (std::uint64_t const second : {1ULL, 1'000'000'000'000ULL}) {
    auto const copy = make(assignment);
    for (auto const& array : image.arrays) {
      auto const place = copy->place_for(array.name, array.content.bytes.size());
      REQUIRE(place.size() == array.content.bytes.size());
      std::memcpy(place.data(), array.content.bytes.data(), place.size());
      if (array.name == "rows") std::memcpy(place.data() + 8, &second, 8);
    }
    CHECK_FALSE(copy->restore(image.state));
  }
}

}  // namespace chorus::parameters
