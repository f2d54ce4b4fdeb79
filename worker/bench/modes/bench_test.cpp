// Parsing and output of chorus-bench.
#include <doctest/doctest.h>

#include "worker/bench/modes/report.hpp"
#include "worker/bench/ranks/options.hpp"
#include "worker/bench/ranks/orders.hpp"

using namespace chorus;
using namespace chorus::bench;

TEST_CASE("sizes are numbers with units") {
  CHECK(parse_sizes("4,1K,1M,64M,1G").value() ==
        std::vector<std::uint64_t>{4, 1024, 1 << 20, 64 << 20, std::uint64_t{1} << 30});
  for (auto const* wrong :
       {"", "4,", ",4", "0", "-1", "4k", "1.5M", "M", "1T", "99999999999999999999", "17179869184G", "4 "})
    CHECK_MESSAGE(parse_sizes(wrong).has_error(), wrong);
  CHECK(readable_size(4) == "4 B");
  CHECK(readable_size(1536) == "1536 B");
  CHECK(readable_size(64 << 20) == "64 MiB");
}

TEST_CASE("lists of numbers, operations and algorithms") {
  CHECK(parse_counts("2").value() == std::vector<std::uint32_t>{2});
  CHECK(parse_counts("2,3,65536").value() == std::vector<std::uint32_t>{2, 3, 65536});
  for (auto const* wrong : {"", "2,", ",2", "0", "-1", "2x3", "65537", "99999999999999999999", "2 "})
    CHECK_MESSAGE(parse_counts(wrong).has_error(), wrong);
  CHECK(parse_shape("0,0,1").value() == plan::Shape{0, 0, 1});
  CHECK(parse_shape("2,x").has_error());
  CHECK(parse_ops("broadcast,barrier").value() == std::vector{Op::broadcast, Op::barrier});
  CHECK(parse_ops("all").value().size() == all_ops.size());
  CHECK(parse_ops("all,barrier").error().detail.find("unknown operation 'all'; there are all_reduce") == 0);
  CHECK(parse_algorithms("ring,auto").value() == std::vector<std::string>{"ring", "auto"});
  CHECK(parse_algorithms("ring,").has_error());
}

TEST_CASE("tasks have whole blocks, and a barrier has one size") {
  CHECK(make_task(Op::all_reduce, Dtype::f32, 12, 5, 0).bytes() == 12);
  CHECK(make_task(Op::all_gather, Dtype::f32, 4, 5, 0).bytes() == 20);
  CHECK(make_task(Op::scatter, Dtype::f16, 1 << 20, 3, 2).bytes() == (1 << 20) + 2);
  CHECK(make_task(Op::scatter, Dtype::f16, 6, 3, 2).root == 2);
  CHECK(make_task(Op::barrier, Dtype::f32, 4096, 7, 0) == Task{Op::barrier, Dtype::u8, 7, 0, {}});
}

TEST_CASE("ranks are bound where they share cores, or spin on one each") {
  Options options;
  options.link = "shm";
  CHECK_FALSE(binds_ranks(options, 2, 4));
  CHECK(binds_ranks(options, 4, 4));
  CHECK(binds_ranks(options, 5, 4));
  options.link = "tcp";
  CHECK_FALSE(binds_ranks(options, 4, 4));
  CHECK(binds_ranks(options, 5, 4));
  options.bind = "none";
  CHECK_FALSE(binds_ranks(options, 5, 4));
  options.bind = "cores";
  CHECK(binds_ranks(options, 2, 4));
}

TEST_CASE("orders arrive as they were given") {
  for (auto const op : all_ops) {
    auto const task = make_task(op, Dtype::bf16, 4096, 4, 3);
    std::istringstream words(to_words(task));
    CHECK(read_task(words).value() == task);
  }
  for (plan::Shape const& shape : {plan::Shape{}, plan::Shape{8}, plan::Shape{2, 4}, plan::Shape{0, 65536, 3}}) {
    plan::Spec const spec{Op::reduce, "torus_2d", 8, 7, 3, false, shape};
    std::istringstream words(to_words(spec));
    CHECK(read_spec(words, Op::reduce, 8).value() == spec);
  }
}

TEST_CASE("orders that are cut off or wrong are refused") {
  for (auto const* wrong : {"", "all_reduce", "all_reduce f32 4", "reduce_all f32 4 0", "all_reduce f33 4 0"}) {
    std::istringstream words(wrong);
    CHECK_MESSAGE(read_task(words).has_error(), wrong);
  }
  for (auto const* wrong : {"", "ring", "ring 0 2", "ring x 2 -", "ring 0 2 2x4", "ring 0 2 2,"}) {
    std::istringstream words(wrong);
    CHECK_MESSAGE(read_spec(words, Op::all_reduce, 8).has_error(), wrong);
  }
}

TEST_CASE("a measurement is one line of JSON, with the bus bandwidth of nccl-tests") {
  Measurement m;
  m.task = {Op::all_reduce, Dtype::f32, 250000, 0};
  m.algorithm = "ring";
  m.link = "tcp";
  m.ranks = 4;
  m.sample.seconds = {0.001, 0.002, 0.0005};
  CHECK(to_json(m) ==
        R"({"op":"all_reduce","algorithm":"ring","link":"tcp","ranks":4,"bytes":1000000,"dtype":"f32","iterations":3,)"
        R"("p50_us":1000.00,"p99_us":2000.00,"algbw_GBps":1,"busbw_GBps":1.5,"correct":true})");
  m.sample.correct = false;
  CHECK(to_json(m).ends_with(R"("correct":false})"));
}

TEST_CASE("bus bandwidth, operation by operation") {
  for (auto const op : {Op::all_gather, Op::reduce_scatter, Op::all_to_all, Op::gather, Op::scatter})
    CHECK(busbw_factor(op, 4) == 0.75);
  CHECK(busbw_factor(Op::all_reduce, 4) == 1.5);
  for (auto const op : {Op::broadcast, Op::reduce}) CHECK(busbw_factor(op, 4) == 1);
  CHECK(busbw_factor(Op::all_reduce, 1) == 0);
}
