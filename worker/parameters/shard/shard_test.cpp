#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "http/json/json.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/parameters/shard/shard.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"
#include "worker/parameters/shard/testing/pushed_shard.hpp"

namespace chorus::parameters {
using namespace testing;

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

TEST_CASE("values that a reader holds do not change, and nothing is copied without a reader") {
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

TEST_CASE("a push of a wrong length, without a clock, or of an unknown client, changes nothing") {
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

TEST_CASE("staleness 0: the version changes when all clients have pushed, with the bits of a sum in their order") {
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
    devices::Reducer(ReduceOp::sum, Dtype::f32).run({sources.data(), 4, &destination, 1, 257}, {});
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

TEST_CASE("staleness 0: the average of the largest floats is the largest float, of all elements and of rows") {
  auto const largest = std::numeric_limits<float>::max();
  auto assignment = plain({2, 1});
  assignment.parameter.staleness = 0;
  assignment.parameter.reduce = "avg";
  assignment.parameter.clients = {"a", "b", "c"};
  for (bool const in_rows : {false, true}) {
    auto const shard = make(assignment);
    for (auto const* const client : {"a", "b", "c"}) {
      auto push = in_rows ? rows(client, 0, {0, 1}, {largest, -largest}) : gradient(client, 0, {largest, -largest});
      push.clock = 0;
      CHECK(apply(*shard, push));
    }
    CHECK(values(*shard) == std::vector<float>{largest, -largest});
  }
}

TEST_CASE("staleness 0: a row of bf16 that only one client pushes is divided by the number of clients, too") {
  constexpr std::uint16_t one = 0x3f80, half = 0x3f00, three = 0x4040, one_and_a_half = 0x3fc0;
  auto assignment = plain({2, 1});
  assignment.parameter.dtype = "bf16";
  assignment.parameter.staleness = 0;
  assignment.parameter.reduce = "avg";
  assignment.parameter.clients = {"a", "b"};
  auto const shard = make(assignment);
  auto const row_of = [](std::string client, std::uint64_t number, std::uint16_t value) {
    auto push = rows(std::move(client), 0, {number}, {0});
    push.dtype = Dtype::bf16;
    push.clock = 0;
    std::array<std::byte, sizeof number + sizeof value> bytes{};
    std::memcpy(bytes.data(), &number, sizeof number);
    std::memcpy(bytes.data() + sizeof number, &value, sizeof value);
    push.data = block_of(bytes.data(), bytes.size());
    return push;
  };
  CHECK(apply(*shard, row_of("a", 0, one)));
  CHECK(apply(*shard, row_of("b", 1, three)));
  std::array<std::uint16_t, 2> found{};
  std::memcpy(found.data(), shard->values()->data(), sizeof found);
  CHECK(found == std::array{half, one_and_a_half});
}

namespace {

void change_clients(Shard& shard, std::vector<std::string> clients) {
  Push change;
  change.kind = PushKind::clients;
  change.clients = std::move(clients);
  auto prepared = shard.prepare(change);
  REQUIRE(prepared.has_value());
  compute(*prepared, 1);
  shard.finish(std::move(*prepared));
}

}  // namespace

TEST_CASE("a round does not wait for a client that has left, and ends if it waited only for this client") {
  auto assignment = plain({1});
  assignment.parameter.staleness = 0;
  assignment.parameter.clients = {"a", "b", "c"};
  auto const shard = make(assignment);
  apply(*shard, gradient("a", 0, {1}, 0));
  apply(*shard, gradient("b", 0, {2}, 0));
  change_clients(*shard, {"a", "b"});
  CHECK(values(*shard) == std::vector<float>{3});
  CHECK(shard->version() == 1);
  CHECK(apply(*shard, gradient("a", 1, {1}, 1)));
  CHECK(apply(*shard, gradient("b", 1, {1}, 1)));
  CHECK(shard->version() == 2);
}

TEST_CASE("a client that replaces the one for which a round waited begins with the next round, and none counts twice") {
  auto assignment = plain({1});
  assignment.parameter.staleness = 0;
  assignment.parameter.clients = {"a", "b"};
  auto const shard = make(assignment);
  apply(*shard, gradient("a", 0, {1}, 0));
  change_clients(*shard, {"a", "c"});
  CHECK(values(*shard) == std::vector<float>{1});
  CHECK(shard->version() == 1);
  CHECK(apply(*shard, gradient("a", 1, {10}, 1)));
  CHECK(shard->version() == 1);
  CHECK(apply(*shard, gradient("c", 0, {100}, 1)));
  CHECK(values(*shard) == std::vector<float>{111});
}

TEST_CASE("a client that comes while another one has not pushed for the round belongs to this round") {
  auto assignment = plain({1});
  assignment.parameter.staleness = 0;
  assignment.parameter.clients = {"a", "b"};
  auto const shard = make(assignment);
  apply(*shard, gradient("a", 0, {1}, 0));
  change_clients(*shard, {"a", "b", "c"});
  CHECK(apply(*shard, gradient("b", 0, {10}, 0)));
  CHECK(shard->version() == 0);
  CHECK(apply(*shard, gradient("c", 0, {100}, 0)));
  CHECK(values(*shard) == std::vector<float>{111});
}

TEST_CASE("only pushed rows change, and repeated ones are summed") {
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
            auto const reader = clock == 1 ? in_parts->values() : nullptr;  // so the next values get new memory
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
  // A first round that has not ended leaves no client.
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

}  // namespace chorus::parameters
