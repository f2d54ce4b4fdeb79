// Every operation of a joined group, over shared memory and over links.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <future>

#include "collectives/core/errc.hpp"
#include "tests/support/mentions.hpp"
#include "worker/api/testing/embedded_group.hpp"
#include "worker/api/testing/must.hpp"
#include "worker/engine/failure/errc.hpp"

using namespace chorus;
using namespace chorus::embedded::testing;
using chorus::testing::mentions;
using engine::EngineErrc;

namespace {

bool is_float(Dtype dtype) {
  return dtype == Dtype::f64 || dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

// A small whole number, as each dtype stores it: little-endian integers, or sign, exponent and fraction.
std::vector<std::byte> repeated(Dtype dtype, std::uint8_t number, std::size_t elements) {
  std::uint64_t bits = number;
  if (is_float(dtype)) {
    auto const [exponent_bits, fraction_bits] = dtype == Dtype::f64   ? std::pair(11, 52)
                                                : dtype == Dtype::f32 ? std::pair(8, 23)
                                                : dtype == Dtype::f16 ? std::pair(5, 10)
                                                                      : std::pair(8, 7);
    auto const exponent = std::bit_width(number) - 1;
    auto const biased = static_cast<std::uint64_t>((1 << (exponent_bits - 1)) - 1 + exponent);
    bits = (biased << fraction_bits) +
           ((std::uint64_t{number} << (fraction_bits - exponent)) - (std::uint64_t{1} << fraction_bits));
  }
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < elements; ++i)
    for (std::size_t byte = 0; byte < element_bytes(dtype); ++byte)
      bytes.push_back(static_cast<std::byte>(bits >> (8 * byte) & 0xff));
  return bytes;
}

void do_everything(JoinedGroup& group, std::size_t r) {
  auto const rank = static_cast<std::int32_t>(r), p = static_cast<std::int32_t>(group.size());
  std::size_t const n = 12, size = group.size();
  auto const sum_of = [&](std::size_t i) { return p * static_cast<std::int32_t>(i) + 100 * p * (p - 1) / 2; };
  auto const own = counting(100 * rank, n);
  std::vector<std::int32_t> sums(n);
  for (std::size_t i = 0; i < n; ++i) sums[i] = sum_of(i);

  auto x = own;
  must(group.all_reduce(x));
  MUST(x == sums);
  std::vector<std::int32_t> y(n);
  must(group.all_reduce(own, y, {.reduce = ReduceOp::max}));
  MUST(y == counting(100 * (p - 1), n));

  x = own;
  must(group.reduce(x, {.root = 1}));
  MUST(x == (rank == 1 ? sums : own));
  must(group.reduce(own, y, {.root = 2}));
  MUST(rank != 2 || y == sums);
  x = own;
  must(group.broadcast(x, {.root = 1}));
  MUST(x == counting(100, n));

  std::vector<std::int32_t> whole(n * size);
  must(group.all_gather(own, whole));
  for (std::size_t s = 0; s < size; ++s) MUST(whole[s * n + 3] == static_cast<std::int32_t>(100 * s + 3));
  auto const expected = whole;
  std::fill(whole.begin(), whole.end(), -1);
  auto const [begin, elements] = group.block(group.rank(), whole.size());
  MUST(elements == n);
  std::copy(own.begin(), own.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin));
  must(group.all_gather(whole));
  MUST(whole == expected);

  std::vector<std::int32_t> block(n);
  must(group.reduce_scatter(whole, block));
  for (std::size_t i = 0; i < n; ++i) MUST(block[i] == p * expected[r * n + i]);
  must(group.reduce_scatter(whole));
  MUST(std::equal(block.begin(), block.end(), whole.begin() + static_cast<std::ptrdiff_t>(r * n)));

  std::vector<std::int32_t> gathered(rank == 1 ? n * size : 0);
  must(group.gather(own, gathered, {.root = 1}));
  MUST(rank != 1 || gathered == expected);
  must(group.scatter(gathered, block, {.root = 1}));
  MUST(block == own);

  std::vector<std::int32_t> const sent = counting(1000 * rank, size);
  std::vector<std::int32_t> received(size);
  must(group.all_to_all(sent, received));
  for (std::size_t s = 0; s < size; ++s) MUST(received[s] == static_cast<std::int32_t>(1000 * s) + rank);
  auto exchanged = sent;
  must(group.all_to_all(exchanged));
  MUST(exchanged == received);
  must(group.barrier());

  CollectiveOptions uneven;
  for (std::size_t s = 0; s < size; ++s) uneven.counts.push_back(s);  // rank 0 brings nothing
  auto const some = counting(10 * rank, r);
  std::vector<std::int32_t> all(size * (size - 1) / 2);
  must(group.all_gather(some, all, uneven));
  for (std::size_t s = 1, at = 0; s < size; at += s++) MUST(all[at] == static_cast<std::int32_t>(10 * s));
}

}  // namespace

TEST_CASE("every operation, in place and not, over shared memory") {
  EmbeddedGroup fleet(3);
  fleet.everywhere([](JoinedGroup& group, std::size_t rank) {
    do_everything(group, rank);
    MUST(group.path() == "shm");
    MUST(group.why_not_shared().empty());
  });
}

TEST_CASE("every operation over links, where a member has no memory to share") {
  EmbeddedGroup fleet(3, Memory::own);
  fleet.everywhere([](JoinedGroup& group, std::size_t rank) {
    do_everything(group, rank);
    MUST(group.path() == "links");
  });
}

TEST_CASE("a program is told which member keeps its group from sharing memory, once the members have met") {
  FakeCoordinator coordinator;
  std::vector<Worker> workers;
  for (auto const memory : {Memory::shared, Memory::own})
    workers.push_back(
        Worker::start(test_options("w" + std::to_string(workers.size()), coordinator.url(), memory)).value());
  coordinator.assign("g", 1, {"w0", "w1"});
  auto first = workers[0].join("g", soon()).value(), second = workers[1].join("g", soon()).value();
  CHECK(first.path() == "unknown");
  CHECK(first.why_not_shared().empty());

  auto const waiting = first.barrier_async();
  must(second.barrier());
  must(waiting.wait());
  CHECK(first.path() == "links");
  INFO(first.why_not_shared());
  CHECK(mentions(first.why_not_shared(), "rank 1 (w1)"));
  CHECK(mentions(second.why_not_shared(), "this member has no memory to share"));
}

TEST_CASE("memory of the arena and from elsewhere, and by name") {
  EmbeddedGroup fleet(2);
  fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
    auto tensor = fleet.workers[rank].allocate<double>(1000).value();
    std::fill(tensor.begin(), tensor.end(), 1.5);
    must(group.all_reduce(tensor, {.algorithm = "ring"}));
    MUST(tensor[999] == 3.0);
    std::array<std::uint8_t, 3> bytes{1, 2, 4};
    must(group.all_reduce(bytes, {.reduce = ReduceOp::sum}));
    MUST(bytes == (std::array<std::uint8_t, 3>{2, 4, 8}));
    std::vector<BFloat16> halves(7, BFloat16{0x3f80});  // 1
    must(group.all_reduce(halves));
    MUST(halves[6] == BFloat16{0x4000});  // 2
    std::vector<float> nothing;
    must(group.all_reduce(nothing));
  });
}

TEST_CASE("every dtype and reduction, over shared memory and over links") {
  struct Expected {
    ReduceOp reduce;
    std::uint8_t result;  // of 3 and 5: another one for each
  };
  constexpr std::array<Expected, 8> all{{{ReduceOp::sum, 8},
                                         {ReduceOp::avg, 4},
                                         {ReduceOp::min, 3},
                                         {ReduceOp::max, 5},
                                         {ReduceOp::prod, 15},
                                         {ReduceOp::band, 1},
                                         {ReduceOp::bor, 7},
                                         {ReduceOp::bxor, 6}}};
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup fleet(2, memory);
    fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
      for (auto const dtype : all_dtypes)
        for (auto const& [reduce, result] : all) {
          bool const is_of_bits = reduce == ReduceOp::band || reduce == ReduceOp::bor || reduce == ReduceOp::bxor;
          auto values = repeated(dtype, rank == 0 ? 3 : 5, 77);
          auto const status = group.all_reduce(TensorView(values, dtype), {.reduce = reduce});
          if (is_of_bits && is_float(dtype)) {
            MUST(status.has_error());
            continue;
          }
          must(status);
          must(values == repeated(dtype, result, 77),
               (std::string(name(reduce)) + " " + std::string(name(dtype))).c_str());
        }
    });
  }
}

TEST_CASE("what cannot be is refused before anything is sent, and a corrected call still fits the others'") {
  EmbeddedGroup fleet(2);
  fleet.everywhere([](JoinedGroup& group, std::size_t rank) {
    std::vector<float> x(10, 1), y(10), z(9);
    if (rank == 0) {
      auto const refused = [&](Status const& status, std::error_code code, std::string const& part) {
        MUST(status.has_error());
        MUST(status.error().code == code);
        must(mentions(status.error().detail, part), status.error().detail.c_str());
      };
      auto const bad = make_error_code(WorkerErrc::bad_argument);
      refused(group.all_reduce(x, {.algorithm = "rign"}), make_error_code(PlanErrc::unknown_algorithm), "ring");
      refused(group.all_reduce(x, {.algorithm = "bruck"}), make_error_code(PlanErrc::unsupported_operation), "bruck");
      refused(group.all_reduce(x, {.reduce = ReduceOp::band}), bad, "band of f32: bit operations are for integers");
      refused(group.all_reduce(x, z), bad, "10 and 9");
      refused(group.all_reduce(x, {.counts = {5, 5}}), bad, "counts");
      refused(group.reduce(x, y, {.root = 2}), bad, "root 2");
      refused(group.all_gather(z, y), bad, "input of 5");
      refused(group.all_gather(std::span(x).first(5), x), bad, "overlap");
      refused(group.all_to_all(z), bad, "equal blocks");
      refused(group.all_reduce(std::vector<TensorView>{x, y, x}), bad, "tensors 0 and 2");
      std::vector<std::int32_t> numbers(10);
      refused(group.all_reduce(x, numbers), bad, "i32");
      refused(group.all_reduce(TensorView(std::as_writable_bytes(std::span(x)).first(7), Dtype::f32)), bad, "whole");
    }
    must(group.all_reduce(x));
    MUST(x == std::vector<float>(10, 2));
  });
}

TEST_CASE("asynchronous calls run in the order in which they were issued, and blocking ones behind them") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup fleet(2, memory);
    fleet.everywhere([](JoinedGroup& group, std::size_t rank) {
      std::vector<std::vector<float>> tensors;
      for (std::size_t i = 0; i < 20; ++i) tensors.emplace_back(100 * (i + 1), static_cast<float>(rank + i));
      std::vector<Handle> handles;
      for (auto& tensor : tensors) handles.push_back(group.all_reduce_async(tensor));
      // Doubles what the first call leaves there: only if it has ended.
      must(group.all_reduce(tensors[0]));
      for (auto const& handle : handles) MUST(handle.is_done());
      for (auto const& handle : handles) must(handle.wait());
      MUST(tensors[0] == std::vector<float>(100, 2));
      for (std::size_t i = 1; i < 20; ++i)
        MUST(tensors[i] == std::vector<float>(100 * (i + 1), static_cast<float>(2 * i + 1)));
    });
  }
}

TEST_CASE("a handle waits to a deadline and no longer, and one that is dropped waits for its call") {
  EmbeddedGroup fleet(2);
  std::promise<void> looked;
  auto const may_go_on = looked.get_future().share();
  fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
    std::vector<float> x(10, 1), y(10, 1);
    if (rank == 0) {
      auto const handle = group.all_reduce_async(x);
      MUST(!handle.wait_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(1)).has_value());
      MUST(!handle.is_done());
      looked.set_value();
      must(handle.wait_until(soon()).value());
      must(handle.wait());
      { auto const dropped = group.all_reduce_async(y); }
    } else {
      may_go_on.wait();
      must(group.all_reduce(x));
      must(group.all_reduce(y));
    }
    MUST(y == std::vector<float>(10, 2));
  });
}

TEST_CASE("a list of tensors of mixed sizes and dtypes, with empty ones, is one call") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    EmbeddedGroup fleet(3, memory);
    fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
      auto const mine = static_cast<float>(rank + 1);
      std::vector<std::size_t> const sizes{0, 1, 1000, 7, 0, 100000, 3};
      std::vector<std::vector<float>> floats;
      for (auto const size : sizes) floats.emplace_back(size, mine);
      std::vector<std::int64_t> longs(5, static_cast<std::int64_t>(rank));
      auto flat = fleet.workers[rank].allocate<float>(64).value();
      std::fill(flat.begin(), flat.end(), mine);

      std::vector<TensorView> list(floats.begin(), floats.end());
      list.insert(list.begin() + 2, TensorView(longs));
      must(group.all_reduce(list));
      for (auto const& tensor : floats) MUST(tensor == std::vector<float>(tensor.size(), 6));
      MUST(longs == std::vector<std::int64_t>(5, 3));

      std::vector<TensorView> const halves{std::span(flat.data(), 32), std::span(flat.data() + 32, 32)};
      must(group.all_reduce_async(halves, {.reduce = ReduceOp::avg}).wait());
      MUST(std::all_of(flat.begin(), flat.end(), [](float value) { return value == 2; }));

      for (auto& tensor : floats) std::fill(tensor.begin(), tensor.end(), mine);
      must(group.broadcast(list, {.root = 2}));
      for (auto const& tensor : floats) MUST(tensor == std::vector<float>(tensor.size(), 3));
      must(group.reduce(list, {.root = 1}));
      for (auto const& tensor : floats) MUST(tensor == std::vector<float>(tensor.size(), rank == 1 ? 9 : 3));
      must(group.all_reduce(std::span<TensorView const>()));
    });
  }
}

TEST_CASE("lists of the same total but of other tensors are refused on all members") {
  EmbeddedGroup fleet(2);
  fleet.everywhere([](JoinedGroup& group, std::size_t rank) {
    std::vector<float> a(rank == 0 ? 10 : 20, 1), b(rank == 0 ? 20 : 10, 1);
    std::vector<TensorView> const list{a, b};
    auto const status = group.all_reduce(list);
    MUST(status.has_error());
    MUST(status.error().code == EngineErrc::plan_mismatch);
    MUST(mentions(status.error().detail, "pieces"));
  });
}

TEST_CASE("calls over HTTP on the same group do not meet those of the program") {
  EmbeddedGroup fleet(2);
  fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
    httplib::Client client(fleet.workers[rank].url());
    std::vector<float> x(1000, 1);
    auto const bytes = std::string(reinterpret_cast<char const*>(x.data()), 4 * x.size());
    MUST(client
             .Put("/v1/tensors/x", {{"Tensor-Dtype", "f32"}, {"Tensor-Shape", "1000"}}, bytes,
                  "application/octet-stream")
             ->status == 201);
    for (int i = 0; i < 3; ++i) {
      auto const handle = group.all_reduce_async(x);
      auto const answer = client.Post("/v1/groups/g/all_reduce", R"({"tensor":"x"})", "application/json");
      must(answer->status == 200, answer->body.c_str());
      must(handle.wait());
    }
    MUST(x == std::vector<float>(1000, 8));
  });
}

TEST_CASE("a timeout may be as long as can be, and not nothing") {
  EmbeddedGroup group(2);
  group.everywhere([](JoinedGroup& member, std::size_t) {
    auto x = counting(1, 5);
    must(member.all_reduce(x, {.timeout = std::chrono::milliseconds::max()}));
    auto const none = member.all_reduce(x, {.timeout = std::chrono::milliseconds(0)});
    MUST(none.has_error() && none.error().code == WorkerErrc::bad_argument);
    must(member.all_reduce(x));
  });
}

TEST_CASE("vectors of nothing agree, wherever they lie") {
  EmbeddedGroup group(2, Memory::own);
  group.everywhere([](JoinedGroup& member, std::size_t rank) {
    std::vector<std::int32_t> in, out;
    if (rank == 1) {
      in.reserve(10);
      out.reserve(10);
    }
    must(member.all_reduce(in, out));
    auto x = counting(1, 5);
    must(member.all_reduce(x));
  });
}

TEST_CASE("the worker's metrics tell of the calls of its program, also of those that a gone member made") {
  EmbeddedGroup fleet(2);
  auto const metrics = [&](std::size_t rank) {
    return httplib::Client(fleet.workers[rank].url()).Get("/metrics")->body;
  };
  fleet.everywhere([](JoinedGroup& group, std::size_t) {
    std::vector<float> x(1 << 18, 1);
    for (int i = 0; i < 3; ++i) must(group.all_reduce(x, {.algorithm = "ring"}));
    must(group.barrier());
  });
  fleet.coordinator.assign("g", 2, fleet.ids());
  CHECK(fleet.join(0).epoch() == 2);
  auto const text = metrics(0);
  CHECK(mentions(text, R"(chorus_collectives_total{op="all_reduce",algorithm="ring",result="succeeded"} 3)"));
  CHECK(mentions(text, R"(size="le_1MiB",le="+Inf"} 3)"));
  CHECK(mentions(text, R"(chorus_collectives_active{op="all_reduce"} 0)"));
  CHECK(mentions(text, R"(chorus_reduce_bytes_total{device="cpu",dtype="f32"} )"));  // not there while it is 0
  CHECK(mentions(text, R"(op="barrier")"));
}

TEST_CASE("a call that failed is counted by the code of its problem") {
  EmbeddedGroup fleet(2);
  auto alone = fleet.join(0);
  std::vector<float> x(10, 1);
  CHECK(alone.all_reduce(x, {.timeout = std::chrono::milliseconds(100)}).has_error());
  // The members had not met: no run had begun.
  fleet.coordinator.assign("g", 2, fleet.ids());
  auto const members = std::array{fleet.join(0), fleet.join(1)};
  auto other = std::async(std::launch::async, [&members] {
    auto mine = members[1];
    return mine.barrier();
  });
  auto mine = members[0];
  must(mine.barrier());
  must(other.get());
  CHECK(mine.all_reduce(x, {.timeout = std::chrono::milliseconds(100)}).has_error());
  auto const text = httplib::Client(fleet.workers[0].url()).Get("/metrics")->body;
  CHECK(mentions(text, R"(chorus_collective_errors_total{op="all_reduce",kind="deadline_exceeded"} 1)"));
}
