#include "collectives/plan/sizes/codes.hpp"

#include <doctest/doctest.h>

#include "collectives/core/errc.hpp"

using namespace chorus;
using namespace chorus::plan;

namespace {

Program program_of(Op op, Rank rank, bool in_place = false) {
  Program program;
  program.spec = {.op = op, .algorithm = "hand_written", .ranks = 3, .root = 1, .in_place = in_place};
  program.rank = rank;
  program.chunks = 3;
  auto const held = memory(program.spec, rank, 3);
  program.input = held.input;
  program.output = held.output;
  return program;
}

struct Elements {
  std::uint64_t input, output;
  bool operator==(Elements const&) const = default;
};
Elements elements(Op op, Rank rank, Sizes const& sizes, bool in_place = false) {
  auto const program = program_of(op, rank, in_place);
  auto const both = layouts(program, sizes);
  return {input_elements(program, both), output_elements(program, both)};
}

}  // namespace

TEST_CASE("every rank's buffers have the elements that the operation defines") {
  Sizes const seven{7, {}, {}};  // 3 2 2
  CHECK(elements(Op::all_reduce, 2, seven) == Elements{7, 7});
  CHECK(elements(Op::reduce, 1, seven) == Elements{7, 7});
  CHECK(elements(Op::reduce, 2, seven) == Elements{7, 0});
  CHECK(elements(Op::broadcast, 0, seven) == Elements{0, 7});
  CHECK(elements(Op::all_gather, 0, seven) == Elements{3, 7});
  CHECK(elements(Op::reduce_scatter, 2, seven) == Elements{7, 2});
  CHECK(elements(Op::gather, 0, seven) == Elements{3, 0});
  CHECK(elements(Op::scatter, 1, seven) == Elements{7, 2});
  CHECK(elements(Op::all_to_all, 0, seven) == Elements{7, 9});
  CHECK(elements(Op::barrier, 0, {3, {}, {}}) == Elements{1, 3});
}

TEST_CASE("a plan in place has one buffer, the larger of the two") {
  CHECK(elements(Op::all_gather, 0, {7, {}, {}}, true) == Elements{7, 7});
  CHECK(elements(Op::reduce_scatter, 2, {7, {}, {}}, true) == Elements{7, 7});
  CHECK(elements(Op::gather, 0, {7, {}, {}}, true) == Elements{3, 0});
}

TEST_CASE("counts are the sizes of the blocks") {
  CHECK(elements(Op::all_gather, 2, {0, {4, 0, 1}, {}}) == Elements{1, 5});
  CHECK(elements(Op::all_to_all, 2, {0, {4, 0, 1}, {2, 2, 1}}) == Elements{5, 5});
}

TEST_CASE("a rank holds its own block at any position") {
  auto const held = [](Op op, Rank rank, Sizes const& sizes) {
    auto program = program_of(op, rank);
    program.spec.by_position = {2, 0, 1};
    auto const range = memory(program.spec, rank, 3);
    program.input = range.input;
    program.output = range.output;
    auto const both = layouts(program, sizes);
    return Elements{input_elements(program, both), output_elements(program, both)};
  };
  for (Rank rank = 0; rank < 3; ++rank)
    for (auto const op : all_ops)
      if (op != Op::barrier) CHECK(held(op, rank, {8, {}, {}}) == elements(op, rank, {8, {}, {}}));  // 3 3 2
  for (Rank rank = 0; rank < 3; ++rank) {
    Sizes const uneven{0, {4, 0, 1}, {}};
    CHECK(held(Op::all_gather, rank, uneven) == elements(Op::all_gather, rank, uneven));
    CHECK(held(Op::scatter, rank, uneven) == elements(Op::scatter, rank, uneven));
  }
}

TEST_CASE("impossible counts are refused with the reason") {
  auto const why = [](Op op, Sizes const& sizes, bool in_place = false) {
    auto const status = check(program_of(op, 0, in_place), sizes);
    return status.has_error() ? status.error().detail : "";
  };
  CHECK(why(Op::all_reduce, {0, {1, 2, 3}, {}}) == "all_reduce takes no counts");
  CHECK(why(Op::all_gather, {0, {1, 2}, {}}) == "counts has 2 numbers; expected one for each of 3 ranks");
  CHECK(why(Op::all_gather, {0, {1, 2, 3}, {1, 2, 3}}) == "all_gather takes no receive_counts");
  CHECK(why(Op::all_to_all, {0, {1, 2, 3}, {}}) ==
        "all_to_all takes counts of what is sent and of what is received, or neither");
  CHECK(why(Op::all_to_all, {0, {1, 2, 3}, {2, 2, 3}}) ==
        "rank 0 sends 1 elements to itself and receives 2 from itself");
  CHECK(why(Op::all_to_all, {0, {1, 2, 3}, {1, 2, 4}}, true) ==
        "all_to_all in place needs as much from every rank as it sends to it");
  CHECK(why(Op::all_gather, {0, {1ull << 62, 1ull << 62, 3}, {}}) == "counts sum up to more than 63 bits hold");
  CHECK(why(Op::all_gather, {0, {1, 2, 3}, {}}) == "");
  CHECK(why(Op::all_to_all, {6, {}, {}}, true) == "");
}

TEST_CASE("an algorithm of equal blocks refuses others, sent or received") {
  auto program = program_of(Op::all_to_all, 0);
  program.spec.algorithm = "bruck";
  program.equal_chunks = true;
  CHECK(check(program, {0, {2, 2, 2}, {2, 2, 2}}).has_value());
  CHECK(check(program, {6, {}, {}}).has_value());
  for (auto const& sizes : {Sizes{0, {2, 2, 2}, {2, 1, 1}}, Sizes{0, {2, 1, 1}, {2, 2, 2}}, Sizes{7, {}, {}}}) {
    auto const status = check(program, sizes);
    REQUIRE(status.has_error());
    CHECK(status.error().detail == "bruck needs blocks of equal size");
  }
}

TEST_CASE("the block of each rank has whole blocks of codes") {
  CHECK(carriers_of(WireFormat::int8, Op::all_reduce, 3, {757, {}, {}}) == 4);
  CHECK(carriers_of(WireFormat::int8, Op::all_gather, 3, {757, {}, {}}) == 4);
  CHECK(carriers_of(WireFormat::fp8_e4m3, Op::reduce_scatter, 3, {60, {}, {}}) == 3);
  CHECK(carriers_of(WireFormat::int8, Op::all_gather, 3, {0, {253, 0, 252}, {}}) == 3);
  CHECK(carriers_of(WireFormat::bf16, Op::all_gather, 3, {0, {253, 0, 252}, {}}) == 505);
  CHECK(blocks_of(Op::all_gather, 3, {757, {}, {}}) == std::vector<std::uint64_t>{253, 252, 252});
}
