#include "server/coordinator/admission/shaping.hpp"

#include <doctest/doctest.h>

using namespace chorus;
using namespace chorus::coordinator;
using Counts = std::vector<std::uint64_t>;
using Shape = plan::TensorShape;

namespace {

Shapes shapes_of(Op op, std::vector<std::optional<Shape>> shapes, Counts counts = {}) {
  Shapes made;
  made.op = op;
  made.tensor = "x";
  made.versions.assign(shapes.size(), 5);
  made.shapes = std::move(shapes);
  made.counts = std::move(counts);
  return made;
}

Shaping shaped(Shapes const& shapes) { return shape_parts(shapes).value(); }

std::string refused(Shapes const& shapes) {
  auto const result = shape_parts(shapes);
  return result.has_error() ? result.error().detail : "";
}

}  // namespace

TEST_CASE("gathered tensors are stacked in rank order, with the rows of each rank") {
  auto const even = shaped(shapes_of(Op::all_gather, {Shape{2, 3}, Shape{2, 3}}));
  CHECK(even.parts[1].sizes == plan::Sizes{12, {}, {}});
  CHECK(even.parts[1].result->shape == Shape{4, 3});
  CHECK(even.parts[1].result->version == 5);
  CHECK_FALSE(even.uneven);

  auto const uneven = shaped(shapes_of(Op::all_gather, {Shape{2, 3}, Shape{0, 3}, Shape{5, 3}}));
  CHECK(uneven.parts[0].sizes == plan::Sizes{0, {6, 0, 15}, {}});
  CHECK(uneven.parts[0].result->shape == Shape{7, 3});
  CHECK(uneven.uneven);
}

TEST_CASE("a gather has a result on the root only") {
  auto question = shapes_of(Op::gather, {Shape{2}, Shape{2}, Shape{2}});
  question.root = 2;
  auto const shaping = shaped(question);
  CHECK_FALSE(shaping.parts[0].result.has_value());
  CHECK(shaping.parts[2].result->shape == Shape{6});
}

TEST_CASE("a scattered tensor is divided by rows, evenly or by counts") {
  auto const even = shaped(shapes_of(Op::scatter, {Shape{5, 4}, {}, Shape{9}}));
  CHECK(even.parts[0].result->shape == Shape{2, 4});
  CHECK(even.parts[2].result->shape == Shape{1, 4});
  CHECK(even.parts[2].sizes == plan::Sizes{0, {8, 8, 4}, {}});
  auto const counted = shaped(shapes_of(Op::reduce_scatter, {Shape{5}, Shape{5}}, {4, 1}));
  CHECK(counted.parts[1].result->shape == Shape{1});
  CHECK(counted.elements == 5);
}

TEST_CASE("a broadcast creates the tensor on ranks without it") {
  auto question = shapes_of(Op::broadcast, {Shape{3}, {}});
  question.versions = {5, 0};
  auto const shaping = shaped(question);
  CHECK_FALSE(shaping.parts[0].result.has_value());
  CHECK(shaping.parts[1].result->shape == Shape{3});
  CHECK(shaping.parts[1].result->version == 0);
}

TEST_CASE("an exchange sends and receives by counts, or evenly") {
  auto const even = shaped(shapes_of(Op::all_to_all, {Shape{4, 2}, Shape{4, 2}}));
  CHECK(even.parts[0].sizes == plan::Sizes{8, {}, {}});
  CHECK(even.parts[0].result->shape == Shape{4, 2});
  auto const counted = shaped(shapes_of(Op::all_to_all, {Shape{3}, Shape{4}}, {1, 2, 4, 0}));
  CHECK(counted.parts[0].sizes == plan::Sizes{0, {1, 2}, {1, 4}});
  CHECK(counted.parts[0].result->shape == Shape{5});
  CHECK(counted.parts[1].result->shape == Shape{2});
}

TEST_CASE("a named output takes the result and replaces any tensor there") {
  auto question = shapes_of(Op::all_reduce, {Shape{3}, Shape{3}});
  question.output = "y";
  auto const shaping = shaped(question);
  CHECK(shaping.parts[0].result->tensor == "y");
  CHECK_FALSE(shaping.parts[0].result->version.has_value());
}

TEST_CASE("impossible counts and places are refused with the possible ones") {
  CHECK(refused(shapes_of(Op::all_reduce, {Shape{3}, Shape{3}}, {1, 2})).starts_with("all_reduce takes none"));
  CHECK(refused(shapes_of(Op::scatter, {Shape{3}, Shape{3}}, {1, 2, 3})) == "3 numbers; expected 2 for 2 ranks");
  CHECK(refused(shapes_of(Op::scatter, {Shape{4}, Shape{4}}, {1, 2})) == "they sum up to 3; the tensor has 4 rows");
  CHECK(refused(shapes_of(Op::all_to_all, {Shape{3}, Shape{3}}, {1, 2, 2, 2})) ==
        "those of rank 1 sum up to 4; its tensor has 3 rows");
  auto in_place = shapes_of(Op::all_gather, {Shape{3}, Shape{3}});
  in_place.in_place = true;
  CHECK(refused(in_place).starts_with("all_gather leaves another size than it finds"));
  auto exchange = shapes_of(Op::all_to_all, {Shape{3}, Shape{3}});
  exchange.in_place = true;
  CHECK(refused(exchange) == "the rows do not divide evenly among 2 ranks");
}
