// The same stories on the double and on every GPU of the host.
#include "worker/devices/cuda/gpu.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/testing/every_gpu.hpp"
#include "worker/devices/cuda/testing/rig.hpp"
#include "worker/devices/cuda/together.hpp"
#include "worker/devices/reduce.hpp"

using namespace chorus;
using namespace chorus::devices;
using testing::Bytes;
using testing::GpuDouble;
using testing::on_every_gpu;
using testing::poison;
using testing::random_bytes;
using testing::Rig;
using testing::same;

namespace {

struct Case {
  ReduceOp op = ReduceOp::sum;
  Dtype dtype = Dtype::f32;
  std::size_t sources = 2;
  std::size_t destinations = 1;
  std::uint64_t elements = 0;
  std::size_t shift = 0;  // elements between an aligned address and the first source; other sources differ
  Reducer::How how;
  bool equal = false;  // most elements are the same in all sources
};

Dtype width_of(Case const& c, bool wide) { return wide ? Dtype::f32 : c.dtype; }

// Compares the GPU's result in poisoned memory with the CPU's. Returns "" or the difference.
std::string difference(GpuUnit& unit, Case const& c, std::mt19937_64& random) {
  std::vector<Bytes> inputs;
  std::vector<std::shared_ptr<GpuMemory>> memory;
  std::vector<std::byte const*> cpu_sources, gpu_sources;
  for (std::size_t s = 0; s < c.sources; ++s) {
    auto const size = element_bytes(width_of(c, s == 0 && c.how.wide_source));
    inputs.push_back(random_bytes(c.elements * size, random));
    if (c.equal && s > 0) std::copy_n(inputs[0].begin(), inputs[0].size() / 4 * 3, inputs[s].begin());
    memory.push_back(unit.acquire((c.elements + c.shift + s) * size).value());
    gpu_sources.push_back(memory.back()->bytes().data() + (c.shift + s) % (c.shift + 3) * size);
    REQUIRE(unit.upload(const_cast<std::byte*>(gpu_sources.back()), inputs.back()).has_value());
  }
  for (auto const& input : inputs) cpu_sources.push_back(input.data());
  auto const result = width_of(c, c.how.wide_results);
  auto const size = element_bytes(result);
  auto const guard = 32 * size;
  std::vector<Bytes> expected(c.destinations, Bytes(c.elements * size));
  std::vector<std::byte*> cpu_destinations, gpu_destinations;
  Bytes const poisoned(c.elements * size + 3 * guard, poison);
  std::vector<std::shared_ptr<GpuMemory>> outputs;
  for (std::size_t d = 0; d < c.destinations; ++d) {
    cpu_destinations.push_back(expected[d].data());
    outputs.push_back(unit.acquire(poisoned.size()).value());
    REQUIRE(unit.upload(outputs.back()->bytes().data(), poisoned).has_value());
    gpu_destinations.push_back(outputs.back()->bytes().data() + guard + (c.shift + d) * size);
  }
  Reducer(c.op, c.dtype)
      .run({cpu_sources.data(), c.sources, cpu_destinations.data(), c.destinations, c.elements, false}, c.how);
  auto const session = unit.gpu().session().value();
  REQUIRE(session
              ->fold(c.op, c.dtype,
                     {gpu_sources.data(), c.sources, gpu_destinations.data(), c.destinations, c.elements, false}, c.how)
              .has_value());
  auto const mark = session->mark(Lane::compute).value();
  REQUIRE(wait_for(*session, mark, std::chrono::steady_clock::now() + std::chrono::seconds(30)).value());

  for (std::size_t d = 0; d < c.destinations; ++d) {
    Bytes found(poisoned.size());
    REQUIRE(unit.download(found, outputs[d]->bytes().data()).has_value());
    auto const begin = guard + (c.shift + d) * size;
    for (std::size_t i = 0; i < found.size(); ++i)
      if ((i < begin || i >= begin + c.elements * size) && found[i] != poison)
        return "byte " + std::to_string(i) + " outside of destination " + std::to_string(d) + " was written";
    for (std::uint64_t i = 0; i < c.elements; ++i)
      if (!same(result, found.data() + begin + i * size, expected[d].data() + i * size))
        return "element " + std::to_string(i) + " of destination " + std::to_string(d);
  }
  return "";
}

std::uint64_t fresh_seed() {
  auto const seed = std::random_device{}();
  MESSAGE("seed " << seed);
  return seed;
}

}  // namespace

TEST_CASE("a GPU reduces every dtype with every operation to the CPU's bits") {
  on_every_gpu([](Gpu& gpu) {
    Rig rig(gpu);
    std::mt19937_64 random(fresh_seed());
    for (auto const op : all_reduce_ops)
      for (auto const dtype : all_dtypes) {
        if (!can_reduce(op, dtype)) continue;
        for (auto const elements : {0, 1, 7, 64, 1003})
          for (std::size_t const sources : {1, 2, 3, 8})
            for (std::size_t const shift : {0, 1, 3}) {
              Case const c{op,    dtype,         sources, 1 + shift % 2, static_cast<std::uint64_t>(elements),
                           shift, {.divisor = 3}};
              auto const differs = difference(*rig.unit, c, random);
              CHECK_MESSAGE(differs == "", name(op) << " of " << elements << " " << name(dtype) << " from " << sources
                                                    << " sources, shifted by " << shift << ", on " << gpu.info().name
                                                    << ": " << differs);
            }
      }
  });
}

TEST_CASE("a GPU finds the average of equal numbers as the CPU does") {
  on_every_gpu([](Gpu& gpu) {
    Rig rig(gpu);
    std::mt19937_64 random(fresh_seed());
    std::vector<float> const weights(5, 0.125F);
    for (auto const dtype : {Dtype::f32, Dtype::f64})
      for (std::size_t const sources : {2, 3, 5})
        for (std::size_t const shift : {0, 1})
          for (std::uint32_t const single : {0, 1}) {
            Case c{ReduceOp::avg, dtype, sources, 1 + shift, 1003, shift, {.divisor = 5, .scale = 8}};
            c.how.weights = weights.data();
            c.how.contributions = static_cast<std::uint32_t>(sources);
            c.how.single = single;
            c.equal = true;
            CHECK(difference(*rig.unit, c, random) == "");
          }
  });
}

TEST_CASE("a GPU keeps the partial sums of halves in f32 on request") {
  on_every_gpu([](Gpu& gpu) {
    Rig rig(gpu);
    std::mt19937_64 random(fresh_seed());
    for (auto const dtype : {Dtype::f16, Dtype::bf16})
      for (auto const op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::prod})
        for (bool const wide_source : {false, true})
          for (bool const wide_results : {false, true}) {
            Case const c{
                op, dtype, 3, 2, 777, 1, {.divisor = 7, .wide_source = wide_source, .wide_results = wide_results}};
            CHECK(difference(*rig.unit, c, random) == "");
          }
  });
}

TEST_CASE("large reductions use the whole grid") {
  on_every_gpu([](Gpu& gpu) {
    Rig rig(gpu);
    std::mt19937_64 random(fresh_seed());
    for (auto const dtype : {Dtype::f32, Dtype::bf16, Dtype::u8})
      CHECK(difference(*rig.unit, {ReduceOp::sum, dtype, 2, 1, 2'000'003, 1, {}}, random) == "");
  });
}

TEST_CASE("a destination may be a source") {
  on_every_gpu([](Gpu& gpu) {
    Rig rig(gpu);
    Bytes const ones(4096, std::byte{1});
    auto const a = rig.unit->acquire(ones.size()).value(), b = rig.unit->acquire(ones.size()).value();
    REQUIRE(rig.unit->upload(a->bytes().data(), ones).has_value());
    REQUIRE(rig.unit->upload(b->bytes().data(), ones).has_value());
    std::byte const* const sources[] = {a->bytes().data(), b->bytes().data()};
    std::byte* const destination = a->bytes().data();
    auto const session = gpu.session().value();
    for (int i = 0; i < 5; ++i)
      REQUIRE(
          session->fold(ReduceOp::sum, Dtype::u8, {sources, 2, &destination, 1, ones.size(), false}, {}).has_value());
    auto const mark = session->mark(Lane::compute).value();
    REQUIRE(wait_for(*session, mark, std::chrono::steady_clock::now() + std::chrono::seconds(30)).value());
    Bytes found(ones.size());
    REQUIRE(rig.unit->download(found, a->bytes().data()).has_value());
    CHECK(found == Bytes(ones.size(), std::byte{6}));
  });
}

// Simulates several GPUs on one: queues and kernels are real, the transfer between GPUs is not.
TEST_CASE("units of one GPU sum in slices and pass slices on, like GPUs with peer access") {
  on_every_gpu([](Gpu& gpu) {
    std::vector<Rig> rigs;
    for (int i = 0; i < 3; ++i) rigs.emplace_back(gpu);
    std::vector<GpuUnit*> const units{rigs[0].unit.get(), rigs[1].unit.get(), rigs[2].unit.get()};
    REQUIRE(see_each_other(units));
    std::mt19937_64 random(fresh_seed());
    constexpr std::uint64_t elements = 1'000'003;
    std::vector<std::shared_ptr<GpuMemory>> memory;
    auto const room = [&](std::size_t unit) {
      memory.push_back(units[unit]->acquire(elements * 2).value());
      return Placed{units[unit], memory.back()->bytes().data()};
    };
    std::vector<Bytes> inputs;
    std::vector<Placed> sources, results;
    std::vector<std::byte const*> host_sources;
    for (std::size_t n = 0; n < 3; ++n) {
      inputs.push_back(random_bytes(elements * 2, random));
      sources.push_back(room(n));
      results.push_back(room(n));
      REQUIRE(units[n]->upload(sources[n].data, inputs[n]).has_value());
      REQUIRE(units[n]->upload(results[n].data, Bytes(elements * 2, poison)).has_value());
    }
    for (auto const& input : inputs) host_sources.push_back(input.data());
    Bytes expected(elements * 2);
    auto* const destination = expected.data();
    Reducer(ReduceOp::sum, Dtype::bf16).run({host_sources.data(), 3, &destination, 1, elements, false}, {});

    REQUIRE(fold_together(units, ReduceOp::sum, Dtype::bf16, sources, results[0], elements).has_value());
    REQUIRE(spread_together(results[0], {results.data() + 1, 2}, elements * 2).has_value());
    for (auto const& result : results) {
      Bytes found(elements * 2);
      REQUIRE(result.unit->download(found, result.data).has_value());
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < elements; ++i)
        wrong += same(Dtype::bf16, found.data() + i * 2, expected.data() + i * 2) ? 0 : 1;
      CHECK(wrong == 0);
    }
  });
}

TEST_CASE("bytes that are copied to a GPU come back, whatever their length") {
  on_every_gpu([](Gpu& gpu) {
    Rig rig(gpu);
    std::mt19937_64 random(fresh_seed());
    for (std::size_t const size : {0ul, 1ul, 4097ul, PinnedPool::slot_bytes, 3 * PinnedPool::slot_bytes + 5}) {
      auto const sent = random_bytes(size, random);
      auto const memory = rig.unit->acquire(size).value();
      REQUIRE(rig.unit->upload(memory->bytes().data(), sent).has_value());
      Bytes back(size, poison);
      REQUIRE(rig.unit->download(back, memory->bytes().data()).has_value());
      CHECK(back == sent);
    }
    CHECK(rig.unit->pinned().pinned_bytes() == 2 * PinnedPool::slot_bytes);
    CHECK(rig.unit->totals().use.in_bytes == rig.unit->totals().use.out_bytes);
  });
}

TEST_CASE("a session's queues wait for each other's marks") {
  on_every_gpu([](Gpu& gpu) {
    Rig rig(gpu);
    auto const memory = rig.unit->acquire(1 << 20).value();
    auto in = rig.unit->pinned().take().value(), out = rig.unit->pinned().take().value();
    auto const session = gpu.session().value();
    auto* const on_device = memory->bytes().data();
    for (int round = 1; round <= 100; ++round) {
      auto const filled = std::byte(round);
      std::fill(in.bytes().begin(), in.bytes().end(), filled);
      REQUIRE(session->copy(Lane::in, on_device, in.bytes().data(), 1 << 20).has_value());
      REQUIRE(session->follow(Lane::out, session->mark(Lane::in).value()).has_value());
      REQUIRE(session->copy(Lane::out, out.bytes().data(), on_device, 1 << 20).has_value());
      auto const there = session->mark(Lane::out).value();
      REQUIRE(wait_for(*session, there, std::chrono::steady_clock::now() + std::chrono::seconds(30)).value());
      REQUIRE(out.bytes().front() == filled);
      REQUIRE(out.bytes().back() == filled);
    }
  });
}

TEST_CASE("a GPU that is lost stays lost, and every call reports it") {
  auto owned = std::make_unique<GpuDouble>();
  auto& gpu = *owned;
  GpuUnit unit(std::move(owned), {.arena_bytes = 1 << 20});
  auto const memory = unit.acquire(100).value();
  Bytes const bytes(100);
  gpu.fail_after(1, GpuErrc::failed);
  CHECK(unit.upload(memory->bytes().data(), bytes).error().code == GpuErrc::failed);
  CHECK(unit.lost() == std::nullopt);
  CHECK(unit.upload(memory->bytes().data(), bytes).has_value());
  gpu.fail_after(1, GpuErrc::lost);
  CHECK(unit.upload(memory->bytes().data(), bytes).error().code == GpuErrc::lost);
  CHECK(unit.lost() == "cuda:0: the double was told to fail");
  CHECK(unit.upload(memory->bytes().data(), bytes).error().code == GpuErrc::lost);
}

TEST_CASE("devices have names, and unknown devices are refused") {
  CHECK(parse_device("cpu").value() == std::nullopt);
  CHECK(parse_device("cuda:7").value() == 7u);
  for (auto const* text : {"", "cuda", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999", "gpu:0", "CUDA:0"})
    CHECK(parse_device(text).error().code == GpuErrc::unavailable);
  FoundGpus found;
  found.gpus.push_back(std::make_unique<GpuDouble>(0));
  found.gpus.push_back(std::make_unique<GpuDouble>(1));
  Gpus const gpus(std::move(found), {});
  CHECK(gpus.find(1u).value()->gpu().info().index == 1);
  CHECK(gpus.find(999u).error().detail == "there is no cuda:999 here: there is cuda:0, cuda:1");
  CHECK(Gpus({{}, "no GPU: for a reason"}, {}).find(0u).error().detail ==
        "there is no cuda:0 here: no GPU: for a reason");
}
