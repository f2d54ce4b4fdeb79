// What a call is checked for, also when the one before had passed.
#include "worker/api/members/buffers.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace chorus;
using namespace chorus::embedded;

namespace {

struct Memory {
  explicit Memory(std::size_t size) : elements(size) {}
  [[nodiscard]] TensorView view() { return TensorView(elements); }
  std::vector<float> elements;
};

}  // namespace

TEST_CASE("a call of the same shape takes what was found out for the one before, and its own memory") {
  CheckedBuffers checked({.rank = 1, .size = 4});
  Memory input(100), first(100), second(100);
  for (auto* output : {&first, &second, &first}) {
    auto const buffers = checked.of(Op::all_reduce, input.view(), output->view(), false, {}).value();
    CHECK(buffers.input.data() == std::as_bytes(std::span(input.elements)).data());
    CHECK(buffers.output.data() == std::as_bytes(std::span(output->elements)).data());
    CHECK(buffers.output.size() == 400);
    CHECK(buffers.elements == 100);
  }
  auto const in_place = checked.of(Op::all_reduce, {}, second.view(), true, {}).value();
  CHECK(in_place.input.data() == in_place.output.data());
}

TEST_CASE("what a rank does not have stays empty in the second call, too") {
  CheckedBuffers checked({.rank = 1, .size = 4});
  Memory input(100), output(100);
  for (int call = 0; call < 2; ++call) {
    auto const buffers = checked.of(Op::reduce, input.view(), output.view(), false, {.root = 0}).value();
    CHECK(buffers.input.size() == 400);
    CHECK(buffers.output.empty());
  }
  CHECK(checked.of(Op::reduce, input.view(), output.view(), false, {.root = 1}).value().output.size() == 400);
}

TEST_CASE("after a call that passed another one is refused for what is wrong with it") {
  CheckedBuffers checked({.rank = 0, .size = 4});
  Memory input(100), output(100), other(99);
  auto const call = [&](TensorView to, CollectiveOptions const& options = {}) {
    return checked.of(Op::all_reduce, input.view(), to, false, options);
  };
  REQUIRE(call(output.view()).has_value());
  CHECK(call(other.view()).has_error());
  CHECK(call(output.view(), {.counts = {25, 25, 25, 25}}).has_error());
  CHECK(call(output.view(), {.reduce = ReduceOp::bor}).has_error());
  auto overlapping = input.view();
  CHECK(call(overlapping).has_error());
  CHECK(call(output.view()).has_value());
  auto of_integers = output.view();
  of_integers.dtype = Dtype::i32;
  CHECK(call(of_integers).has_error());
}

TEST_CASE("tensors of a list are refused where an output overlaps another tensor, and only there") {
  std::vector<float> memory(100);
  auto const part = [&](std::size_t from, std::size_t size) {
    return TensorView(std::span(memory).subspan(from, size));
  };
  auto const why = [](std::vector<ConstTensorView> const& inputs, std::vector<TensorView> const& outputs) {
    auto const status = check_apart(inputs, outputs);
    return status.has_error() ? status.error().detail : "";
  };
  std::string const first_and_last = "tensors 0 and 2 of the list overlap";
  CHECK(why({}, {part(40, 20), part(0, 40), part(60, 40)}).empty());
  CHECK(why({}, {part(0, 10), part(10, 10), part(0, 10)}) == first_and_last);
  CHECK(why({}, {part(0, 50), part(60, 10), part(49, 5)}) == first_and_last);
  CHECK(why({}, {part(0, 90), part(95, 1), part(50, 1)}) == first_and_last);         // a short one within a long one
  CHECK(why({}, {part(0, 50), part(20, 0), part(50, 5)}).empty());                   // an empty one lies nowhere
  std::vector<ConstTensorView> const inputs{part(0, 10), part(0, 20), part(5, 30)};  // may overlap each other
  CHECK(why(inputs, {part(40, 10), part(50, 10), part(60, 10)}).empty());
  CHECK(why(inputs, {part(34, 10), part(50, 10), part(60, 10)}) == first_and_last);
  CHECK(why({part(70, 10), part(80, 10)}, {part(90, 10), part(60, 11)}) == "tensors 0 and 1 of the list overlap");
}
