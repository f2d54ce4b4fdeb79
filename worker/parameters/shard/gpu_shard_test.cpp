// A shard on a GPU has the same bits as a shard in host memory: after steps, copies and restores.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "worker/devices/cuda/testing/gpu_double.hpp"
#include "worker/parameters/shard/shard.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

using devices::GpuErrc;
using devices::testing::GpuDouble;
using Bytes = std::vector<std::byte>;

constexpr Dtype float_dtypes[] = {Dtype::f64, Dtype::f32, Dtype::f16, Dtype::bf16};
constexpr char const* optimizers[] = {
    R"({"name":"none"})",
    R"({"name":"sgd","weight_decay":0.1})",
    R"({"name":"momentum","clip_value":0.5})",
    R"({"name":"nesterov"})",
    R"({"name":"adagrad","initial_accumulator":0.5})",
    R"({"name":"adam","clip_norm":0.25})",
    R"({"name":"adamw","weight_decay":0.1})",
};

// A worker with doubles of GPUs.
class Host {
 public:
  explicit Host(std::uint64_t arena_bytes = 1 << 20, std::uint32_t count = 1)
      : gpus_(found(count), {.arena_bytes = arena_bytes}) {}
  [[nodiscard]] GpuDouble& gpu() const { return dynamic_cast<GpuDouble&>(gpus_[0].gpu()); }
  [[nodiscard]] ShardMemory memory() { return {pool, &gpus_}; }
  tensors::Pool pool{16 << 20, 256 << 20};

 private:
  static devices::FoundGpus found(std::uint32_t count) {
    devices::FoundGpus all;
    for (std::uint32_t i = 0; i < count; ++i) all.gpus.push_back(std::make_unique<GpuDouble>(i, 16 << 20));
    return all;
  }
  devices::Gpus gpus_;
};

ShardSpec spec_of(api::ShardAssignment assignment, std::string device) {
  assignment.parameter.device = std::move(device);
  return ShardSpec::from(assignment).value();
}

// Numbers of this dtype between -1 and 1.
Bytes numbers(Dtype dtype, std::size_t count, unsigned seed) {
  Bytes bytes(count * element_bytes(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    auto const value = static_cast<double>((i * 37 + seed * 101) % 255) / 128 - 1;
    auto const single = static_cast<float>(value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &single, sizeof bits);
    // f16: the sign, an exponent near 0, and the mantissa.
    auto const half = static_cast<std::uint16_t>(
        dtype == Dtype::bf16 ? bits >> 16 : (bits >> 16 & 0x8000) | ((i * 53 + seed) & 0x3bff));
    auto* const at = bytes.data() + i * element_bytes(dtype);
    if (dtype == Dtype::f64) std::memcpy(at, &value, sizeof value);
    if (dtype == Dtype::f32) std::memcpy(at, &single, sizeof single);
    if (element_bytes(dtype) == 2) std::memcpy(at, &half, sizeof half);
  }
  return bytes;
}

std::shared_ptr<tensors::Block> block_of(tensors::Pool& pool, Bytes const& bytes) {
  auto block = pool.acquire(bytes.size()).value();
  if (!bytes.empty()) std::memcpy(block->data(), bytes.data(), bytes.size());
  return block;
}

Status take(Shard& shard, Push const& push) {
  REQUIRE_FALSE(shard.refuse(push).has_value());
  auto const turn = shard.turn(push);
  REQUIRE(turn.has_value());
  REQUIRE(*turn == Shard::Turn::now);
  auto change = shard.prepare(push);
  if (!change) return change.error();
  if (auto begun = change->begin(); !begun) return begun;
  for (std::uint64_t at = 0; at < change->elements(); at += 1000)
    change->compute(at, std::min<std::uint64_t>(1000, change->elements() - at));
  shard.finish(std::move(*change));
  return ok();
}

// Returns the whole state of a shard as bytes.
std::vector<std::pair<std::string, Bytes>> content(Shard& shard) {
  std::vector<std::pair<std::string, Bytes>> all;
  auto const image = shard.image().value();
  for (auto const& array : image.arrays)
    all.emplace_back(array.name, Bytes(array.content.bytes.begin(), array.content.bytes.end()));
  std::ranges::sort(all);
  return all;
}

// A shard on the host and the same shard on a GPU.
struct Pair {
  Pair(Host& host, api::ShardAssignment const& assignment)
      : pool(host.pool),
        here(Shard::make(spec_of(assignment, "cpu"), host.memory()).value()),
        there(Shard::make(spec_of(assignment, "cuda"), host.memory()).value()) {}

  void push(Push push) {
    push.sequence = next[push.client.name]++;
    REQUIRE(take(*here, push).has_value());
    REQUIRE(take(*there, push).has_value());
  }
  void gradient(std::string client, Dtype dtype, std::size_t count, unsigned seed,
                std::optional<std::uint64_t> clock = std::nullopt) {
    Push one;
    one.client = {std::move(client), 0};
    one.clock = clock;
    one.dtype = dtype;
    one.data = block_of(pool, numbers(dtype, count, seed));
    push(std::move(one));
  }
  [[nodiscard]] bool are_same() { return content(*here) == content(*there) && here->version() == there->version(); }

  tensors::Pool& pool;
  std::unique_ptr<Shard> here, there;
  std::map<std::string, std::uint64_t> next;
};

api::ShardAssignment assignment_of(char const* optimizer, Dtype dtype, std::vector<std::uint64_t> shape) {
  auto assignment = testing::plain(std::move(shape));
  assignment.parameter.dtype = name(dtype);
  assignment.parameter.optimizer = api::parse_optimizer(optimizer).value();
  assignment.parameter.initializer = api::parse_initializer(R"({"name":"normal","deviation":1})").value();
  return assignment;
}

void fill(Shard& shard, ShardImage const& image) {
  for (auto const& array : image.arrays) {
    auto const place = shard.place_for(array.name, array.content.bytes.size());
    REQUIRE(place.size() == array.content.bytes.size());
    std::ranges::copy(array.content.bytes, place.begin());
  }
  REQUIRE(shard.settle().has_value());
  REQUIRE(shard.restore(image.state));
}

}  // namespace

TEST_CASE("every optimizer over every dtype, asynchronous, bounded and in rounds: the same on a GPU as on the host") {
  for (auto const* optimizer : optimizers)
    for (auto const dtype : float_dtypes)
      for (std::int64_t const staleness : {-1, 0, 2}) {
        CAPTURE(optimizer);
        CAPTURE(name(dtype));
        CAPTURE(staleness);
        Host host;
        auto assignment = assignment_of(optimizer, dtype, {523});
        assignment.parameter.staleness = staleness;
        assignment.parameter.reduce = "avg";
        if (staleness >= 0) assignment.parameter.clients = {"a", "b", "c"};
        Pair pair(host, assignment);
        REQUIRE(pair.are_same());
        for (std::uint64_t clock = 0; clock < 3; ++clock)
          for (auto const* client : {"c", "a", "b"})
            pair.gradient(client, dtype, 523, static_cast<unsigned>(clock * 3) + static_cast<unsigned>(*client),
                          staleness >= 0 ? std::optional(clock) : std::nullopt);
        CHECK(pair.are_same());
      }
}

TEST_CASE("halves take gradients of f32 on a GPU too") {
  Host host;
  Pair pair(host, assignment_of(R"({"name":"adam"})", Dtype::bf16, {301}));
  for (unsigned seed = 0; seed < 4; ++seed) pair.gradient("a", Dtype::f32, 301, seed);
  CHECK(pair.are_same());
}

TEST_CASE("values that are set, and rows that are pushed, are those of the host") {
  for (auto const* optimizer : {R"({"name":"adam","clip_norm":0.5})", R"({"name":"none"})"}) {
    Host host;
    Pair pair(host, assignment_of(optimizer, Dtype::f16, {20, 8}));
    pair.gradient("a", Dtype::f16, 160, 1);
    Push value;
    value.kind = PushKind::value;
    value.client = {"a", 0};
    value.dtype = Dtype::f16;
    value.data = block_of(pair.pool, numbers(Dtype::f16, 160, 9));
    pair.push(value);
    REQUIRE(pair.are_same());
    std::uint64_t const chosen[] = {3, 3, 11};
    Bytes bytes(sizeof chosen);
    std::memcpy(bytes.data(), chosen, sizeof chosen);
    auto const gradient = numbers(Dtype::f16, 24, 4);
    bytes.insert(bytes.end(), gradient.begin(), gradient.end());
    Push rows;
    rows.kind = PushKind::rows;
    rows.client = {"a", 0};
    rows.dtype = Dtype::f16;
    rows.rows = 3;
    rows.data = block_of(pair.pool, bytes);
    pair.push(rows);
    pair.gradient("a", Dtype::f16, 160, 2);
    CHECK(pair.are_same());
  }
}

TEST_CASE("a version is copied to the host once, at the first request") {
  Host host;
  Pair pair(host, assignment_of(R"({"name":"sgd"})", Dtype::f32, {100}));
  CHECK(pair.there->values() != nullptr);  // the initial values
  pair.gradient("a", Dtype::f32, 100, 1);
  CHECK(pair.there->values() == nullptr);
  auto const copy = pair.there->download().value();
  CHECK(std::memcmp(copy->data(), pair.here->values()->data(), 400) == 0);
  pair.there->keep(copy);
  CHECK(pair.there->values() == copy);
  // A reader of this version is served while the next one is made.
  Push next;
  next.client = {"a", 0};
  next.sequence = 1;
  next.data = block_of(host.pool, numbers(Dtype::f32, 100, 2));
  CHECK_FALSE(pair.there->prepare(next)->is_in_place());
}

TEST_CASE("an image goes from the host to a GPU and back, in the middle of a round too, and both go on alike") {
  for (auto const* from : {"cpu", "cuda"})
    for (auto const* to : {"cpu", "cuda"}) {
      Host host;
      auto assignment = assignment_of(R"({"name":"adam"})", Dtype::f16, {30, 4});
      assignment.parameter.staleness = 0;
      assignment.parameter.clients = {"a", "b"};
      Pair pair(host, assignment);
      pair.gradient("a", Dtype::f16, 120, 1, 0);
      pair.gradient("b", Dtype::f16, 120, 2, 0);
      pair.gradient("b", Dtype::f16, 120, 3, 1);
      auto const image = (std::string(from) == "cpu" ? pair.here : pair.there)->image().value();
      auto copy = Shard::make(spec_of(assignment, to), host.memory(), Shard::Content::to_come).value();
      fill(*copy, image);
      REQUIRE(content(*copy) == content(*pair.here));
      (std::string(to) == "cpu" ? pair.here : pair.there) = std::move(copy);
      pair.gradient("a", Dtype::f16, 120, 4, 1);
      CHECK(pair.are_same());
    }
}

TEST_CASE("a worker without a GPU, or without room there, makes no such shard, and says why") {
  tensors::Pool pool(1 << 20, 16 << 20);
  auto const spec = spec_of(testing::plain({4}), "cuda");
  auto const without = Shard::make(spec, pool);
  CHECK(without.error().detail == "this worker uses no GPU");
  CHECK(why_not_made(without.error()).code == http::ProblemCode::unsupported);
  devices::Gpus const none({{}, "no GPU: for a reason"}, {});
  CHECK(why_not_made(Shard::make(spec, {pool, &none}).error()).detail == "no GPU: for a reason");
  Host host(1 << 16);
  auto const large = Shard::make(spec_of(testing::plain({1 << 20}), "cuda"), host.memory());
  CHECK(why_not_made(large.error()).code == http::ProblemCode::unavailable);
  auto lazy = testing::plain({4, 4});
  lazy.parameter.device = "cuda";
  lazy.parameter.lazy_rows = 2;
  CHECK(ShardSpec::from(lazy).error().code == http::ProblemCode::invalid_field);
  CHECK(ShardSpec::from([&] {
          auto strange = testing::plain({4});
          strange.parameter.device = "cuda:0";
          return strange;
        }())
            .error()
            .code == http::ProblemCode::invalid_field);
}

TEST_CASE("a shard takes the GPU with the most free memory, and none that is lost") {
  Host host(1 << 20, 2);
  auto const spec = spec_of(testing::plain({1000}), "cuda");
  auto const first = Shard::make(spec, host.memory()).value(), second = Shard::make(spec, host.memory()).value();
  CHECK(first->gpu() != second->gpu());
  host.gpu().fail_after(0, GpuErrc::lost);
  auto const& lost = first->gpu()->gpu().info().index == 0 ? first : second;
  REQUIRE(lost->gpu()->gpu().info().index == 0);
  CHECK(lost->download().error().code == GpuErrc::lost);
  auto const third = Shard::make(spec, host.memory()).value(), fourth = Shard::make(spec, host.memory()).value();
  CHECK(third->gpu()->gpu().info().index == 1);
  CHECK(fourth->gpu()->gpu().info().index == 1);
}

TEST_CASE("a device that fails in a step or a copy is an error, and earlier copies stay valid") {
  Host host;
  Pair pair(host, assignment_of(R"({"name":"adam"})", Dtype::f32, {100}));
  auto const before = pair.there->values();
  host.gpu().fail_after(2, GpuErrc::lost);
  Push push;
  push.client = {"a", 0};
  push.data = block_of(host.pool, numbers(Dtype::f32, 100, 1));
  CHECK(take(*pair.there, push).error().code == GpuErrc::lost);
  CHECK(pair.there->version() == 0);
  CHECK(pair.there->values() == before);
  CHECK(pair.there->download().error().code == GpuErrc::lost);
  CHECK(pair.there->image().error().code == GpuErrc::lost);
  CHECK(Shard::make(spec_of(testing::plain({4}), "cuda"), host.memory()).error().code == GpuErrc::lost);
}

}  // namespace chorus::parameters
