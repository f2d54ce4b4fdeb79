// Compressed calls by members of a group in C++: over links and in shared memory, in one piece and in several.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <thread>

#include "collectives/algorithms/catalogue.hpp"
#include "worker/engine/groups/fused_calls.hpp"
#include "worker/engine/testing/doubles.hpp"
#include "worker/engine/testing/group_members.hpp"
#include "worker/engine/testing/tcp_fleet.hpp"

using namespace chorus;
using namespace chorus::engine;
using namespace chorus::engine::testing;

namespace {

CallOptions as(WireFormat format, plan::Algorithm const& algorithm) {
  CallOptions options;
  options.algorithm = &algorithm;
  options.compression = format;
  return options;
}

// Element i of the sum of members that have (rank + 1) wave(i).
double wave(std::size_t i) { return std::sin(static_cast<double>(i)); }

template <class T>
std::vector<T> vector_of(plan::Rank rank, std::size_t size) {
  std::vector<T> values;
  for (std::size_t i = 0; i < size; ++i) values.push_back(static_cast<T>((rank + 1) * wave(i)));
  return values;
}

// int8: c (2 + c) p m.
bool is_near(double sum, double got) { return std::abs(sum - got) <= 1.0 / 254 * 2.01 * 3 * 3; }

}  // namespace

TEST_CASE("members get the sum of f32 and of f64, in place and not, over links and in shared memory") {
  for (bool const shares_memory : {false, true}) {
    CAPTURE(shares_memory);
    CHECK(of_all_members(shares_memory, [](Group& group, plan::Rank rank, memory::Arena*) {
            int wrong = 0;
            auto floats = vector_of<float>(rank, 100000);
            auto const doubles = vector_of<double>(rank, 1001);
            std::vector<double> sums(doubles.size());
            auto const memory = std::as_writable_bytes(std::span(floats));
            auto const one =
                group.all_reduce(memory, memory, Dtype::f32, ReduceOp::sum, as(WireFormat::int8, algorithms::allpairs));
            auto const two =
                group.all_reduce(std::as_bytes(std::span(doubles)), std::as_writable_bytes(std::span(sums)), Dtype::f64,
                                 ReduceOp::sum, as(WireFormat::int8, algorithms::mesh));
            if (one.status.has_error() || two.status.has_error()) return 1;
            for (std::size_t i = 0; i < floats.size(); ++i) wrong += is_near(6 * wave(i), double{floats[i]}) ? 0 : 1;
            for (std::size_t i = 0; i < sums.size(); ++i) wrong += is_near(6 * wave(i), sums[i]) ? 0 : 1;
            return wrong;
          }) == 0);
  }
}

namespace {

struct Called {
  Op op;
  plan::Algorithm const* algorithm;
};

constexpr Called every_call[]{
    {Op::all_reduce, &algorithms::mesh},        {Op::all_reduce, &algorithms::allpairs},
    {Op::all_reduce, &algorithms::centralized}, {Op::reduce, &algorithms::centralized},
    {Op::reduce_scatter, &algorithms::direct},  {Op::reduce_scatter, &algorithms::centralized},
    {Op::all_gather, &algorithms::ring},        {Op::all_gather, &algorithms::direct},
    {Op::broadcast, &algorithms::tree},         {Op::broadcast, &algorithms::centralized}};

// Results of every call in every format, one after the other, as the member sees them: what it does not get is empty.
std::vector<std::vector<float>> results_of(Group& group, plan::Rank rank) {
  constexpr std::uint64_t elements = 3 * 1000;
  std::vector<std::vector<float>> results;
  for (auto const format : all_wire_formats)
    for (auto const [op, algorithm] : every_call)
      for (auto const reduce : {ReduceOp::sum, ReduceOp::avg}) {
        auto const input = vector_of<float>(rank, op == Op::all_gather ? elements / members : elements);
        std::vector<float> output(op == Op::reduce_scatter ? elements / members : elements, -7.0F);
        auto in = std::as_bytes(std::span(input));
        auto out = std::as_writable_bytes(std::span(output));
        if (op == Op::reduce && rank != 0) out = {};
        if (op == Op::broadcast && rank != 0) in = {};
        auto const result = group.run(op, in, out, Dtype::f32, reduce, elements, as(format, *algorithm));
        if (result.status.has_error()) return {};
        if (out.empty()) output.clear();
        results.push_back(std::move(output));
      }
  return results;
}

}  // namespace

TEST_CASE("every operation in every format leaves the same bits, at every member and on both paths") {
  std::vector<std::vector<float>> results[2][members];
  for (bool const shares_memory : {false, true})
    CHECK(of_all_members(shares_memory, [&](Group& group, plan::Rank rank, memory::Arena*) {
            results[shares_memory ? 1 : 0][rank] = results_of(group, rank);
            return group.path() == (shares_memory ? "shm" : "links") ? 0 : 1;
          }) == 0);
  auto const& first = results[0][0];
  constexpr auto per_format = std::size(every_call) * 2;
  REQUIRE(first.size() == all_wire_formats.size() * per_format);
  for (auto const& of_path : results)
    for (plan::Rank rank = 0; rank < members; ++rank) CHECK(of_path[rank].size() == first.size());
  for (std::size_t call = 0; call < first.size(); ++call) {
    auto const op = every_call[call % per_format / 2].op;
    CAPTURE(name(all_wire_formats[call / per_format]));
    CAPTURE(name(op));
    CAPTURE(every_call[call % per_format / 2].algorithm->name);
    for (plan::Rank rank = 0; rank < members; ++rank) {
      CHECK(results[0][rank][call] == results[1][rank][call]);
      if (op == Op::all_reduce)
        CHECK(results[0][rank][call] == results[0][0][call % 2 + call / per_format * per_format]);
      if (op == Op::all_gather || op == Op::broadcast) CHECK(results[0][rank][call] == results[0][0][call]);
      // A block of a reduce_scatter is encoded by itself, so only algorithms can be compared.
      auto const direct = call / per_format * per_format + 8 + call % 2;
      if (op == Op::reduce_scatter) CHECK(results[0][rank][call] == results[0][rank][direct]);
    }
    if (op == Op::reduce) CHECK(results[0][0][call] == results[0][0][call % 2 + call / per_format * per_format]);
  }
}

TEST_CASE("codes between groups leave the same bits at every member over links, and the plain sum in shared memory") {
  constexpr std::size_t size = 100001;
  for (bool const shares_memory : {false, true}) {
    std::vector<float> results[members];
    CHECK(of_all_members(shares_memory, [&](Group& group, plan::Rank rank, memory::Arena*) {
            auto options = as(WireFormat::int8, algorithms::grouped_allpairs);
            options.compression->between = Level::rack;
            options.shape = {2, 1};
            results[rank] = vector_of<float>(rank, size);
            auto const memory = std::as_writable_bytes(std::span(results[rank]));
            auto const done = group.all_reduce(memory, memory, Dtype::f32, ReduceOp::sum, options);
            return done.status.has_value() && group.path() == (shares_memory ? "shm" : "links") ? 0 : 1;
          }) == 0);
    auto plain = vector_of<float>(0, size);
    for (plan::Rank rank = 1; rank < members; ++rank) {
      auto const term = vector_of<float>(rank, size);
      for (std::size_t i = 0; i < size; ++i) plain[i] += term[i];
    }
    int wrong = 0;
    for (std::size_t i = 0; i < size; ++i) wrong += is_near(6 * wave(i), double{results[0][i]}) ? 0 : 1;
    CHECK(wrong == 0);
    CHECK((results[0] == plain) == shares_memory);
    for (auto const& result : results) CHECK(result == results[0]);
  }
}

TEST_CASE("the largest f16 and bf16 survive in blocks; a sum beyond f16 is infinite") {
  CHECK(of_all_members(false, [](Group& group, plan::Rank rank, memory::Arena*) {
          constexpr std::uint16_t largest_f16 = 0x7bff, largest_bf16 = 0x7f7f, infinite_f16 = 0x7c00;
          int wrong = 0;
          for (auto const format : {WireFormat::int8, WireFormat::fp8_e4m3}) {
            auto const broadcast = [&](Dtype dtype, std::uint16_t value) {
              std::vector<std::uint16_t> halves(300, rank == 0 ? value : std::uint16_t{0});
              auto const bytes = std::as_writable_bytes(std::span(halves));
              auto options = as(format, algorithms::tree);
              options.in_place = true;
              auto const in = rank == 0 ? std::span<std::byte const>(bytes) : std::span<std::byte const>();
              auto const done = group.run(Op::broadcast, in, bytes, dtype, ReduceOp::sum, halves.size(), options);
              return done.status.has_value() && halves == std::vector<std::uint16_t>(300, value);
            };
            wrong += broadcast(Dtype::f16, largest_f16) ? 0 : 1;
            wrong += broadcast(Dtype::bf16, largest_bf16) ? 0 : 1;
            std::vector<std::uint16_t> halves(300, largest_f16);
            auto const bytes = std::as_writable_bytes(std::span(halves));
            auto const sum = group.all_reduce(bytes, bytes, Dtype::f16, ReduceOp::sum, as(format, algorithms::mesh));
            wrong += sum.status.has_value() && halves == std::vector<std::uint16_t>(300, infinite_f16) ? 0 : 1;
          }
          return wrong;
        }) == 0);
}

TEST_CASE("tensors in memory of GPUs get the same bits as those of the host") {
  TcpFleet fleet(members, {});
  engine::PlanCache cache(1 << 20);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (plan::Rank rank = 0; rank < members; ++rank)
    threads.emplace_back([&, rank] {
      Group group(fleet.membership("g", rank), fleet.plane(rank), cache);
      auto const gpu = std::make_shared<Double>(rank);
      auto host = vector_of<float>(rank, 1000);
      auto const bytes = std::as_writable_bytes(std::span(host));
      auto const there = allocate_on(gpu, bytes.size());
      std::ranges::copy(bytes, there.bytes.begin());
      auto options = as(WireFormat::int8, algorithms::mesh);
      auto const on_host = group.all_reduce(bytes, bytes, Dtype::f32, ReduceOp::sum, options);
      options.gpu = &gpu->unit;
      auto const on_gpu = group.all_reduce(there.for_engine(), there.for_engine(), Dtype::f32, ReduceOp::sum, options);
      if (on_host.status.has_error() || on_gpu.status.has_error() || !std::ranges::equal(bytes, there.bytes)) ++wrong;
      // Only codes, 4 blocks of 256 bytes, cross to the host and back.
      auto const use = gpu->unit.totals().use;
      if (use.in_bytes != 1024 || use.out_bytes != 1024 || use.kernels != 2) ++wrong;
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a call sends a quarter of the bytes") {
  CHECK(of_all_members(false, [](Group& group, plan::Rank rank, memory::Arena*) {
          auto floats = vector_of<float>(rank, 252 * 300);
          auto const memory = std::as_writable_bytes(std::span(floats));
          CallOptions plain;
          plain.algorithm = &algorithms::allpairs;
          auto const whole = group.all_reduce(memory, memory, Dtype::f32, ReduceOp::sum, plain);
          auto const codes =
              group.all_reduce(memory, memory, Dtype::f32, ReduceOp::sum, as(WireFormat::int8, algorithms::allpairs));
          if (whole.status.has_error() || codes.status.has_error()) return 1;
          return codes.statistics.bytes_sent * 1008 == whole.statistics.bytes_sent * 256 ? 0 : 1;
        }) == 0);
}

TEST_CASE("everybody gets all blocks, in place, with uneven counts") {
  for (bool const shares_memory : {false, true}) {
    CAPTURE(shares_memory);
    CHECK(of_all_members(shares_memory, [](Group& group, plan::Rank rank, memory::Arena*) {
            std::vector<std::uint64_t> const counts{300, 0, 700};
            std::vector<float> whole(1000, -7.0F);
            std::size_t const begin = rank == 2 ? 300 : rank == 1 ? 300 : 0;
            for (std::size_t i = begin; i < begin + counts[rank]; ++i) whole[i] = static_cast<float>(wave(i));
            auto options = as(WireFormat::int8, algorithms::direct);
            options.counts = counts;
            options.in_place = true;
            auto const memory = std::as_writable_bytes(std::span(whole));
            if (group.run(Op::all_gather, memory, memory, Dtype::f32, ReduceOp::sum, 0, options).status.has_error())
              return 1;
            int wrong = 0;
            for (std::size_t i = 0; i < whole.size(); ++i) wrong += is_near(wave(i), double{whole[i]}) ? 0 : 1;
            return wrong;
          }) == 0);
  }
}

namespace {

// Sums of the results of `calls` calls with error feedback at rank 0, of members with vector_of().
std::vector<double> sums_of(Op op, plan::Algorithm const& algorithm, int calls, bool shares_memory) {
  std::vector<double> sums;
  auto const story = [&](Group& group, plan::Rank rank, memory::Arena*) {
    auto const input = vector_of<float>(rank, 1000);
    std::vector<float> output(op == Op::all_gather ? 3000 : 1000);
    auto options = as(WireFormat::int8, algorithm);
    if (rank != 1) options.error_feedback = "x";  // members may differ
    std::vector<double> own(output.size());
    for (int call = 0; call < calls; ++call) {
      auto const done = group.run(op, std::as_bytes(std::span(input)), std::as_writable_bytes(std::span(output)),
                                  Dtype::f32, ReduceOp::sum, output.size(), options);
      if (done.status.has_error()) return 1;
      for (std::size_t i = 0; i < own.size(); ++i) own[i] += output[i];
    }
    if (rank == 0) sums = own;
    return 0;
  };
  CHECK(of_all_members(shares_memory, story) == 0);
  return sums;
}

}  // namespace

// The bounds of docs/reference/compressed_collectives.md, with the roundings of the sums with the residual.
TEST_CASE("with error feedback the results of many calls add up to the sum, over links and in shared memory") {
  constexpr int calls = 200;
  constexpr double c = (1 + 0x1p-20) / 254, m = 3, a = c * m / (1 - c), rounding = 0x1p-23 * (m + a);
  for (bool const shares_memory : {false, true}) {
    CAPTURE(shares_memory);
    auto const gathered = sums_of(Op::all_gather, algorithms::direct, calls, shares_memory);
    REQUIRE(gathered.size() == 3000);
    int wrong = 0, far = 0;
    for (std::size_t i = 0; i < gathered.size(); ++i) {
      auto const rank = static_cast<plan::Rank>(i / 1000);
      double const exact = calls * double{static_cast<float>((rank + 1) * wave(i % 1000))};
      bool const is_near_enough = std::abs(gathered[i] - exact) <= a + calls * rounding;
      (rank == 1 ? far : wrong) += is_near_enough ? 0 : 1;
    }
    CHECK(wrong == 0);
    CHECK(far > 900);  // without it the same error comes again with every call
    auto const reduced = sums_of(Op::all_reduce, algorithms::allpairs, calls, shares_memory);
    REQUIRE(reduced.size() == 1000);
    // Member 1 has none: its error, at most 2 c, is that of every call.
    double const of_a_sum = c * (6 + 3 * a) + 2 * c + 3 * 0x1p-23 * (6 + 3 * a);
    for (std::size_t i = 0; i < reduced.size(); ++i)
      wrong += std::abs(reduced[i] - calls * 6 * wave(i)) <= 2 * a + calls * (of_a_sum + rounding) ? 0 : 1;
    CHECK(wrong == 0);
  }
}

TEST_CASE("a call that fails leaves the residual as it was, and one of another size begins anew") {
  CHECK(of_all_members(false, [](Group& group, plan::Rank rank, memory::Arena*) {
          auto options = as(WireFormat::int8, algorithms::direct);
          options.error_feedback = "x";
          std::vector<float> input{127, 0.25F}, output(6);
          auto const gather = [&](std::uint64_t elements) {
            return group.run(Op::all_gather, std::as_bytes(std::span(input)), std::as_writable_bytes(std::span(output)),
                             Dtype::f32, ReduceOp::sum, elements, options);
          };
          bool right = gather(6).status.has_value() && output[rank * 2 + 1] == 0;
          auto wrong = options;
          wrong.compression = WireFormat::int8;
          std::vector<std::int32_t> integers(2);
          auto const bytes = std::as_writable_bytes(std::span(integers));
          right = right && group.all_reduce(bytes, bytes, Dtype::i32, ReduceOp::sum, wrong).status.has_error();
          right = right && gather(6).status.has_value() && output[rank * 2 + 1] == 0;  // 0.5, ties to even
          right = right && gather(6).status.has_value() && output[rank * 2 + 1] == 1;  // 0.75
          input = {127};
          output.resize(3);
          right = right && gather(3).status.has_value() && output[rank] == 127;
          input = {127, 0.25F};
          output.resize(6);
          right = right && gather(6).status.has_value() && output[rank * 2 + 1] == 0;
          return right ? 0 : 1;
        }) == 0);
}

TEST_CASE("lists of tensors are summed, over links and in shared memory") {
  for (bool const shares_memory : {false, true}) {
    CAPTURE(shares_memory);
    CHECK(of_all_members(shares_memory, [](Group& group, plan::Rank rank, memory::Arena* arena) {
            FusedCalls calls(group, rank, arena, {.bucket_bytes = 40000, .alone_bytes = 30000});
            std::vector<std::vector<float>> own;
            for (std::size_t const size : {1, 700, 1000, 3, 9000, 1}) own.push_back(vector_of<float>(rank, size));
            std::vector<FusedTensor> list;
            for (auto& tensor : own) list.push_back({std::as_writable_bytes(std::span(tensor)), Dtype::f32});
            auto const choose = [](std::uint64_t, Dtype) -> Result<CallOptions> {
              return as(WireFormat::int8, algorithms::allpairs);
            };
            if (calls.run(Op::all_reduce, list, ReduceOp::sum, choose).status.has_error()) return 1;
            int wrong = 0;
            for (auto const& tensor : own)
              for (std::size_t i = 0; i < tensor.size(); ++i) wrong += is_near(6 * wave(i), double{tensor[i]}) ? 0 : 1;
            return wrong;
          }) == 0);
  }
}

TEST_CASE("members with different formats, and one without, refuse each other and name both") {
  for (bool const shares_memory : {false, true}) {
    CAPTURE(shares_memory);
    CHECK(of_all_members(shares_memory, [](Group& group, plan::Rank rank, memory::Arena*) {
            std::vector<float> floats(1000);
            auto const memory = std::as_writable_bytes(std::span(floats));
            auto options = as(rank == 0 ? WireFormat::int8 : WireFormat::fp8_e4m3, algorithms::mesh);
            if (rank == 2) options.compression.reset();
            auto const result = group.all_reduce(memory, memory, Dtype::f32, ReduceOp::sum, options);
            if (!result.status.has_error() || result.status.error().code != EngineErrc::plan_mismatch) return 1;
            auto const& why = result.status.error().detail;
            bool const names_both = (why.find("as int8 mesh") != std::string::npos) +
                                        (why.find("as fp8_e4m3 mesh") != std::string::npos) +
                                        (why.find("f32[1000] mesh") != std::string::npos) >=
                                    2;
            return names_both ? 0 : 1;
          }) == 0);
  }
}

TEST_CASE("what cannot be compressed is refused before anything is sent, and the next call fits") {
  CHECK(of_all_members(false, [](Group& group, plan::Rank, memory::Arena*) {
          std::vector<std::int32_t> integers(100);
          std::vector<float> floats(100);
          auto const wrong = std::as_writable_bytes(std::span(integers)),
                     right = std::as_writable_bytes(std::span(floats));
          auto const refused =
              group.all_reduce(wrong, wrong, Dtype::i32, ReduceOp::sum, as(WireFormat::int8, algorithms::mesh));
          auto const done =
              group.all_reduce(right, right, Dtype::f32, ReduceOp::sum, as(WireFormat::int8, algorithms::mesh));
          return refused.status.has_error() && done.status.has_value() ? 0 : 1;
        }) == 0);
}
