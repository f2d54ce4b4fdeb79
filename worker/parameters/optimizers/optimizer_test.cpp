#include "worker/parameters/optimizers/optimizer.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "worker/parameters/optimizers/errc.hpp"

using namespace chorus;
using namespace chorus::parameters;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

// A shard of f32 with its optimizer.
class Shard {
 public:
  Shard(char const* json, std::vector<float> values, std::uint64_t row_elements = 0)
      : values_(std::move(values)),
        optimizer_(
            Optimizer::make(api::parse_optimizer(json).value(), Dtype::f32, values_.size(), row_elements).value()) {}

  Shard& step(std::vector<float> const& gradient) {
    optimizer_.step(bytes(), {std::as_bytes(std::span(gradient)), Dtype::f32});
    return *this;
  }
  Shard& step_rows(std::vector<std::uint64_t> const& rows, std::vector<float> const& gradient) {
    optimizer_.step_rows(bytes(), rows, {std::as_bytes(std::span(gradient)), Dtype::f32});
    return *this;
  }
  void grow(std::size_t elements) {
    values_.resize(elements);
    REQUIRE(optimizer_.grow(elements).has_value());
  }
  [[nodiscard]] std::vector<float> const& values() const { return values_; }
  [[nodiscard]] Optimizer& optimizer() { return optimizer_; }
  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(values_)); }

 private:
  std::vector<float> values_;
  Optimizer optimizer_;
};

std::vector<float> some_gradient(std::size_t count, int seed) {
  std::vector<float> gradient(count);
  for (std::size_t i = 0; i < count; ++i)
    gradient[i] = std::sin(static_cast<float>(i * 7 + static_cast<std::size_t>(seed)));
  return gradient;
}

std::vector<std::string> state_names(char const* json, Dtype dtype, std::uint64_t row_elements = 0) {
  auto optimizer = Optimizer::make(api::parse_optimizer(json).value(), dtype, 8, row_elements).value();
  std::vector<std::string> names;
  for (auto const& array : optimizer.state()) {
    CHECK(array.bytes.size() == 8 / array.elements_each * element_bytes(array.dtype));
    names.emplace_back(array.name);
  }
  return names;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("none sums, in every dtype, and integers wrap") {
  for (auto const dtype : all_dtypes) {
    auto optimizer = Optimizer::make({}, dtype, 3).value();
    std::vector<std::byte> values(3 * element_bytes(dtype)), gradient(values.size());
    optimizer.step(values, {gradient, dtype});
    CHECK(values == gradient);
    CHECK(optimizer.state().empty());
    CHECK(optimizer.steps() == 1);
  }
  std::vector<std::uint8_t> values{250, 1}, gradient{10, 1};
  auto optimizer = Optimizer::make({}, Dtype::u8, 2).value();
  optimizer.step(std::as_writable_bytes(std::span(values)), {std::as_bytes(std::span(gradient)), Dtype::u8});
  CHECK(values == std::vector<std::uint8_t>{4, 2});
}

TEST_CASE("none adds to f16 values in f32 and rounds once, for gradients of either dtype") {
  auto optimizer = Optimizer::make({}, Dtype::f16, 2).value();
  std::vector<std::uint16_t> values{0x3c00, 0xc000};  // 1 and -2
  std::vector<float> const wide{0.5F, 0x1.8p-11F};
  std::vector<std::uint16_t> const narrow{0x3800, 0x3c00};
  optimizer.step(std::as_writable_bytes(std::span(values)), {std::as_bytes(std::span(wide)), Dtype::f32});
  CHECK(values == std::vector<std::uint16_t>{0x3e00, 0xbfff});
  optimizer.step(std::as_writable_bytes(std::span(values)), {std::as_bytes(std::span(narrow)), Dtype::f16});
  CHECK(values == std::vector<std::uint16_t>{0x4000, 0xbbfe});
}

TEST_CASE("integers have no optimizer except none") {
  for (auto const* json : {R"({"name":"sgd"})", R"({"name":"adam"})"}) {
    auto const made = Optimizer::make(api::parse_optimizer(json).value(), Dtype::i32, 4);
    REQUIRE(made.has_error());
    CHECK(made.error().code == OptimizerErrc::unsupported_dtype);
  }
}

TEST_CASE("a state that does not fit into memory is an error") {
  auto const made =
      Optimizer::make(api::parse_optimizer(R"({"name":"adam"})").value(), Dtype::f32, std::uint64_t{1} << 60);
  REQUIRE(made.has_error());
  CHECK(made.error().code == OptimizerErrc::out_of_memory);
}

TEST_CASE("every method keeps the arrays that its header names") {
  CHECK(state_names(R"({"name":"none"})", Dtype::f16) == Names{});
  CHECK(state_names(R"({"name":"sgd"})", Dtype::f32) == Names{});
  CHECK(state_names(R"({"name":"sgd"})", Dtype::f16) == Names{"master"});
  CHECK(state_names(R"({"name":"momentum"})", Dtype::f64) == Names{"momentum"});
  CHECK(state_names(R"({"name":"nesterov"})", Dtype::bf16) == Names{"momentum", "master"});
  CHECK(state_names(R"({"name":"adagrad"})", Dtype::f32) == Names{"accumulator"});
  CHECK(state_names(R"({"name":"adam"})", Dtype::f32) == Names{"first_moment", "second_moment"});
  CHECK(state_names(R"({"name":"adamw"})", Dtype::f16, 4) ==
        Names{"first_moment", "second_moment", "master", "row_steps"});
  CHECK(state_names(R"({"name":"momentum"})", Dtype::f32, 4) == Names{"momentum"});
}

TEST_CASE("a shard that is restored from its state goes on with the same bits") {
  constexpr auto* json = R"({"name":"adam","learning_rate":0.01})";
  Shard whole(json, std::vector<float>(50, 1));
  for (int i = 0; i < 20; ++i) whole.step(some_gradient(50, i));
  Shard restored(json, whole.values());
  auto const from = whole.optimizer().state(), to = restored.optimizer().state();
  for (std::size_t i = 0; i < from.size(); ++i)
    std::copy(from[i].bytes.begin(), from[i].bytes.end(), to[i].bytes.begin());
  restored.optimizer().set_steps(whole.optimizer().steps());
  for (int i = 20; i < 40; ++i)
    CHECK(whole.step(some_gradient(50, i)).values() == restored.step(some_gradient(50, i)).values());
}

TEST_CASE("a step that is applied in parts, in any order, ends with the same bits") {
  constexpr auto* json = R"({"name":"adamw","weight_decay":0.1})";
  Shard whole(json, std::vector<float>(100, 1)), parts(json, std::vector<float>(100, 1));
  for (int i = 0; i < 5; ++i) {
    auto const gradient = some_gradient(100, i);
    whole.step(gradient);
    auto const step = parts.optimizer().begin_step();
    for (auto const& [begin, end] : {std::pair(37, 100), std::pair(0, 5), std::pair(5, 37)}) {
      auto const at = static_cast<std::size_t>(begin), size = static_cast<std::size_t>(end - begin);
      parts.optimizer().apply(step, parts.bytes().subspan(at * 4, size * 4), at,
                              {std::as_bytes(std::span(gradient).subspan(at, size)), Dtype::f32});
    }
  }
  CHECK(whole.values() == parts.values());
}

TEST_CASE("only the named rows change, and bias is corrected by a row's own number of steps") {
  constexpr auto* json = R"({"name":"adam","learning_rate":0.1})";
  Shard rows(json, std::vector<float>(12), 3), alone(json, std::vector<float>(3));
  for (int i = 0; i < 4; ++i) {
    auto const gradient = some_gradient(3, i);
    rows.step_rows({2}, gradient);
    alone.step(gradient);
  }
  auto expected = std::vector<float>(12);
  std::copy(alone.values().begin(), alone.values().end(), expected.begin() + 6);
  CHECK(rows.values() == expected);
  CHECK(rows.optimizer().steps() == 0);

  // A new row takes a first step, as large as the first step of the other row.
  rows.step_rows({0, 3}, {1, 1, 1, -1, -1, -1});
  CHECK(rows.values()[0] == doctest::Approx(-0.1));
  CHECK(rows.values()[9] == doctest::Approx(0.1));
}

TEST_CASE("dense steps count for every row") {
  constexpr auto* json = R"({"name":"adam","learning_rate":0.1})";
  Shard mixed(json, std::vector<float>(6), 3), dense(json, std::vector<float>(3));
  auto const three = some_gradient(3, 1);
  auto both = three;
  both.insert(both.end(), three.begin(), three.end());
  mixed.step(both).step_rows({1}, three).step(both);
  dense.step(three).step(three).step(three);
  CHECK(std::vector<float>(mixed.values().begin() + 3, mixed.values().end()) == dense.values());
}

TEST_CASE("rows of other methods are stepped like single elements") {
  for (auto const* json : {R"({"name":"none"})", R"({"name":"sgd"})", R"({"name":"momentum"})",
                           R"({"name":"nesterov"})", R"({"name":"adagrad"})"}) {
    Shard rows(json, std::vector<float>(8, 1), 2), alone(json, std::vector<float>(4, 1));
    rows.step_rows({1, 3}, {1, 2, 3, 4}).step_rows({1, 3}, {1, 2, 3, 4});
    alone.step({1, 2, 3, 4}).step({1, 2, 3, 4});
    auto const& w = alone.values();
    CHECK(rows.values() == std::vector<float>{1, 1, w[0], w[1], 1, 1, w[2], w[3]});
  }
}

TEST_CASE("a shard that grows keeps its elements, and new elements have initial state") {
  constexpr auto* json = R"({"name":"adagrad","learning_rate":1,"initial_accumulator":4})";
  Shard grown(json, {0, 0}, 2), fresh(json, {0, 0, 0, 0});
  grown.step({1, 2});
  grown.grow(4);
  grown.step_rows({1}, {1, 2});
  fresh.step({1, 2, 1, 2});
  CHECK(grown.values() == fresh.values());
  for (std::size_t elements = 6; elements < 2000; elements += 2) grown.grow(elements);
  CHECK(grown.optimizer().state().at(0).bytes.size() == 1998 * 4);
  CHECK(grown.optimizer().grow(std::uint64_t{1} << 60).error().code == OptimizerErrc::out_of_memory);
  CHECK(grown.optimizer().elements() == 1998);
}

TEST_CASE("clipping by norm scales the push, and clipping by value limits its elements") {
  CHECK(Shard(R"({"name":"sgd","learning_rate":1,"clip_norm":1})", {0, 0}).step({3, 4}).values() ==
        std::vector<float>{-0.6F, -0.8F});
  CHECK(Shard(R"({"name":"sgd","learning_rate":1,"clip_norm":5})", {0, 0}).step({3, 4}).values() ==
        std::vector<float>{-3, -4});
  CHECK(Shard(R"({"name":"sgd","learning_rate":1,"clip_value":3.5})", {0, 0, 0}).step({3, 4, -9}).values() ==
        std::vector<float>{-3, -3.5, 3.5});
  // The norm is that of the whole push; this shard has a part of it.
  Shard part(R"({"name":"sgd","learning_rate":1,"clip_norm":1})", {0});
  float const gradient = 3;
  part.optimizer().step(part.bytes(), {std::as_bytes(std::span(&gradient, 1)), Dtype::f32}, 6);
  CHECK(part.values() == std::vector<float>{-0.5});
}

TEST_CASE("elements that are not finite affect no other element") {
  for (auto const* json : {R"({"name":"none"})", R"({"name":"sgd"})", R"({"name":"momentum"})", R"({"name":"adagrad"})",
                           R"({"name":"adam"})", R"({"name":"adamw","clip_value":1,"clip_norm":1})"}) {
    INFO(std::string(json));
    Shard clean(json, std::vector<float>(40, 1)), dirty(json, std::vector<float>(40, 1));
    auto gradient = std::vector<float>(40, 0.01F);
    clean.step(gradient);
    gradient[7] = not_a_number;
    gradient[39] = not_a_number;
    dirty.step(gradient);
    for (std::size_t i = 0; i < 40; ++i) {
      if (i == 7 || i == 39)
        CHECK(std::isnan(dirty.values()[i]));
      else
        CHECK(dirty.values()[i] == clean.values()[i]);
    }
  }
  CHECK(Shard(R"({"name":"none"})", {1}).step({infinity}).values()[0] == infinity);
  CHECK(Shard(R"({"name":"sgd","learning_rate":1,"clip_value":2})", {1}).step({infinity}).values()[0] == -1);
}

TEST_CASE("the squared norm is exact if sums are, and reads only the elements") {
  CHECK(squared_norm({{}, Dtype::f32}) == 0);
  for (std::size_t count : {1u, 15u, 16u, 17u, 5000u}) {
    std::vector<float> ones(count, -2);
    CHECK(squared_norm({std::as_bytes(std::span(ones)), Dtype::f32}) == 4.0 * static_cast<double>(count));
    std::vector<std::uint16_t> halves(count, 0x4000);  // f16: 2
    CHECK(squared_norm({std::as_bytes(std::span(halves)), Dtype::f16}) == 4.0 * static_cast<double>(count));
  }
}
