#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/testing/gpu_double.hpp"
#include "worker/tensors/errc.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

using namespace chorus;
using namespace chorus::tensors;

namespace {

constexpr std::size_t MiB = 1 << 20;

class World {
 public:
  std::uint64_t put(std::string name, std::uint8_t fill, std::optional<std::uint64_t> expected = {}) {
    return try_put(std::move(name), fill, expected).value();
  }
  Result<std::uint64_t> try_put(std::string name, std::uint8_t fill, std::optional<std::uint64_t> expected = {}) {
    auto block = pool.acquire(8).value();
    std::fill_n(block->data(), 8, std::byte{fill});
    return store.put(std::move(name), Dtype::u8, {8}, std::move(block), expected);
  }

  Pool pool{16 * MiB, 64 * MiB};
  Store store;
};

std::uint8_t first_byte(Tensor const& tensor) { return std::to_integer<std::uint8_t>(*tensor.data->data()); }

}  // namespace

TEST_CASE("a version is one more with each put") {
  World w;
  CHECK(w.put("grad", 1) == 1);
  CHECK(w.put("grad", 2) == 2);
  CHECK(w.store.get("grad").value().version == 2);
  CHECK(first_byte(w.store.get("grad").value()) == 2);
}

TEST_CASE("a version is never used twice, not even after a deletion") {
  World w;
  w.put("grad", 1);
  w.put("grad", 2);
  CHECK(w.store.erase("grad", {}).has_value());
  CHECK(w.store.get("grad").error().code == TensorErrc::unknown);
  CHECK(w.put("grad", 3) == 3);
}

TEST_CASE("a version is never used twice, however many names are erased, and their memory is bounded") {
  World w;
  w.put("grad", 1);
  w.put("grad", 1);
  CHECK(w.store.erase("grad", {}).has_value());
  for (int i = 0; i < 20000; ++i) {
    auto const name = "n" + std::to_string(i);
    w.put(name, 0);
    CHECK(w.store.erase(name, {}).has_value());
  }
  CHECK(w.put("grad", 1) == 3);
}

TEST_CASE("a snapshot keeps its bytes when the tensor is replaced or erased") {
  World w;
  w.put("grad", 1);
  auto const snapshot = w.store.get("grad").value();
  w.put("grad", 2);
  CHECK(w.store.erase("grad", {}).has_value());
  CHECK(first_byte(snapshot) == 1);
  CHECK(snapshot.version == 1);
}

TEST_CASE("a wrong expected version is refused with both values") {
  World w;
  CHECK(w.put("grad", 1, 0) == 1);
  CHECK(w.try_put("grad", 2, 0).error().code == TensorErrc::version_changed);
  CHECK(w.put("grad", 2, 1) == 2);
  auto const refused = w.try_put("grad", 3, 1).error();
  CHECK(refused.code == TensorErrc::version_changed);
  CHECK(refused.detail == "tensor grad is at version 2, version 1 was expected");
  CHECK(w.try_put("other", 1, 7).error().detail == "tensor other does not exist, version 7 was expected");
  CHECK(w.store.erase("grad", 1).error().code == TensorErrc::version_changed);
  CHECK(w.store.erase("grad", 2).has_value());
}

TEST_CASE("a locked tensor is busy until it is released") {
  World w;
  w.put("grad", 1);
  {
    auto const exclusive = w.store.lock("grad", 1).value();
    CHECK(w.store.get("grad").error().code == TensorErrc::busy);
    CHECK(w.try_put("grad", 2).error().code == TensorErrc::busy);
    CHECK(w.store.erase("grad", {}).error().code == TensorErrc::busy);
    CHECK(w.store.lock("grad", 1).error().code == TensorErrc::busy);
    CHECK(w.store.list("", 10).size() == 1);
  }
  CHECK(w.store.get("grad").value().version == 1);
}

TEST_CASE("a tensor that was changed in place is a new version") {
  World w;
  w.put("grad", 1);
  auto exclusive = w.store.lock("grad", 1).value();
  exclusive.bytes()[0] = std::byte{9};
  CHECK(exclusive.release_changed() == 2);
  CHECK(w.store.get("grad").value().version == 2);
  CHECK(first_byte(w.store.get("grad").value()) == 9);
  CHECK(w.store.lock("grad", 2).has_value());
}

TEST_CASE("a tensor that is being read, is unknown or at another version cannot be locked") {
  World w;
  w.put("grad", 1);
  CHECK(w.store.lock("nothing", 1).error().code == TensorErrc::unknown);
  CHECK(w.store.lock("grad", 2).error().code == TensorErrc::version_changed);
  auto snapshot = w.store.get("grad").value();
  CHECK(w.store.lock("grad", 1).error().code == TensorErrc::busy);
  snapshot.data.reset();
  CHECK(w.store.lock("grad", 1).has_value());
}

TEST_CASE("a moved Exclusive releases once") {
  World w;
  w.put("grad", 1);
  {
    auto first = w.store.lock("grad", 1).value();
    auto const second = std::move(first);
    CHECK(w.store.get("grad").error().code == TensorErrc::busy);
  }
  CHECK(w.store.get("grad").has_value());
}

TEST_CASE("the list goes on after a name, in order, and ends at the limit") {
  World w;
  for (auto const* name : {"c", "a", "d", "b"}) w.put(name, 0);
  auto const page = w.store.list("a", 2);
  REQUIRE(page.size() == 2);
  CHECK(page[0].name == "b");
  CHECK(page[1].name == "c");
  CHECK(w.store.list("d", 2).empty());
  CHECK(w.store.count() == 4);
  CHECK(w.store.host_bytes() == 32);
}

TEST_CASE("shapes that overflow are refused, whatever order their dimensions have") {
  constexpr auto big = std::uint64_t{1} << 32;
  struct {
    Shape shape;
    Dtype dtype;
    std::optional<std::uint64_t> elements;
  } const table[] = {
      {{}, Dtype::f32, 1},
      {{0}, Dtype::f32, 0},
      {{4096, 1024}, Dtype::f32, 4194304},
      {{big, big}, Dtype::u8, {}},
      {{big, big / 2}, Dtype::u8, big * (big / 2)},
      {{big, big / 2}, Dtype::u16, {}},
      {{big, big / 4}, Dtype::u16, big * (big / 4)},
      {{~std::uint64_t{0}}, Dtype::u8, {}},
      {{~std::uint64_t{0}, 2}, Dtype::f64, {}},
      {{big, big, 0}, Dtype::u8, {}},
      {{0, big, big}, Dtype::u8, {}},
      {Shape(32, 1), Dtype::f64, 1},
      {Shape(33, 1), Dtype::f64, {}},
  };
  for (auto const& row : table) {
    CAPTURE(to_string(row.shape));
    auto const elements = element_count(row.shape, row.dtype);
    CHECK(elements.has_value() == row.elements.has_value());
    if (row.elements) CHECK(elements.value() == *row.elements);
    if (!row.elements) CHECK(elements.error().code == TensorErrc::bad_shape);
  }
}

TEST_CASE("a shape's text is parsed to the same shape, and other texts are refused") {
  for (Shape const& shape : {Shape{}, Shape{7}, Shape{4096, 1024}, Shape{0, 1}})
    CHECK(parse_shape(to_string(shape)).value() == shape);
  CHECK(parse_shape("18446744073709551615").value() == Shape{~std::uint64_t{0}});
  for (auto const* text : {",", "1,", ",1", "1,,2", "-1", "+1", " 1", "1 ", "1.5", "0x10", "1;2", "[1,2]", "abc",
                           "18446744073709551616", "99999999999999999999999999"})
    CHECK(parse_shape(text).error().code == TensorErrc::bad_shape);
  std::string many = "1";
  for (int i = 0; i < 31; ++i) many += ",1";
  CHECK(parse_shape(many).has_value());
  CHECK(parse_shape(many + ",1").error().code == TensorErrc::bad_shape);
  CHECK(parse_shape(std::string(10000, '1')).error().detail.size() < 200);
}

TEST_CASE("names are safe in paths") {
  for (std::string const& name :
       {std::string("grad"), std::string("grad/0"), std::string("a.b_c~d-e"), std::string("A9"), std::string(255, 'x')})
    CHECK(is_valid_name(name));
  for (std::string const& name :
       {std::string(), std::string("/"), std::string("a/"), std::string("/a"), std::string("a//b"), std::string("."),
        std::string(".."), std::string("a/../b"), std::string("a b"), std::string("a%b"), std::string("a\0b", 3),
        std::string("\xc3\xa9"), std::string(256, 'x')})
    CHECK_FALSE(is_valid_name(name));
  World w;
  CHECK(w.try_put("../etc", 1).error().code == TensorErrc::bad_name);
}

TEST_CASE("a version may lie on a GPU, and the next one elsewhere") {
  devices::GpuUnit gpu(std::make_unique<devices::testing::GpuDouble>(), {.arena_bytes = MiB});
  World w;
  w.put("grad", 1);
  auto block = acquire_on(gpu, 8).value();
  std::vector<std::byte> const sent(8, std::byte{2});
  REQUIRE(gpu.upload(block->data(), sent).has_value());
  CHECK(w.store.put("grad", Dtype::u8, {8}, std::move(block), 1).value() == 2);
  auto const on_gpu = w.store.get("grad").value();
  CHECK(on_gpu.data->gpu() == &gpu);
  CHECK(w.store.host_bytes() == 0);
  CHECK(w.put("grad", 3) == 3);
  CHECK(w.store.get("grad").value().data->gpu() == nullptr);
  std::vector<std::byte> found(8);
  REQUIRE(gpu.download(found, on_gpu.data->data()).has_value());
  CHECK(found == sent);
}

TEST_CASE("bytes are copied between all kinds of memory") {
  devices::GpuUnit a(std::make_unique<devices::testing::GpuDouble>(0), {.arena_bytes = 16 * MiB});
  devices::GpuUnit b(std::make_unique<devices::testing::GpuDouble>(1), {.arena_bytes = 16 * MiB});
  Pool pool(0, 64 * MiB);
  constexpr std::size_t size = 2 * MiB + 5;
  std::vector<std::byte> sent(size);
  for (std::size_t i = 0; i < size; ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (auto* from_gpu : {static_cast<devices::GpuUnit*>(nullptr), &a, &b})
    for (auto* to_gpu : {static_cast<devices::GpuUnit*>(nullptr), &a, &b}) {
      auto const first = pool.acquire(size).value(), last = pool.acquire(size).value();
      std::copy(sent.begin(), sent.end(), first->data());
      auto const from = acquire(pool, from_gpu, size).value(), to = acquire(pool, to_gpu, size).value();
      REQUIRE(copy(*first, *from).has_value());
      REQUIRE(copy(*from, *to).has_value());
      REQUIRE(copy(*to, *last).has_value());
      CHECK(std::equal(sent.begin(), sent.end(), last->data()));
    }
}

TEST_CASE("a GPU's memory is limited, and is freed with the last reader of a version") {
  devices::GpuUnit gpu(std::make_unique<devices::testing::GpuDouble>(), {.arena_bytes = MiB});
  World w;
  auto block = acquire_on(gpu, MiB).value();
  CHECK(acquire_on(gpu, 1).error().detail == "cuda:0: 1 bytes asked for, 1048576 of the arena's 1048576 in use");
  CHECK(w.store.put("grad", Dtype::u8, {MiB}, std::move(block), {}).has_value());
  auto reader = w.store.get("grad");
  CHECK(w.store.erase("grad", {}).has_value());
  CHECK(gpu.totals().arena_used_bytes == MiB);
  reader = Error(TensorErrc::unknown, "");
  CHECK(gpu.totals().arena_used_bytes == 0);
}

TEST_CASE("many threads put and read: every snapshot is one whole version") {
  World w;
  w.put("grad", 0);
  std::vector<std::thread> threads;
  std::atomic<int> torn = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&w, &torn, t] {
      for (int i = 0; i < 500; ++i) {
        w.put("grad", static_cast<std::uint8_t>(t * 50 + i % 50));
        auto const snapshot = w.store.get("grad").value();
        auto const bytes = snapshot.data->bytes();
        if (std::any_of(bytes.begin(), bytes.end(), [&](std::byte b) { return b != bytes[0]; })) ++torn;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(torn == 0);
  CHECK(w.store.get("grad").value().version == 2001);
}

TEST_CASE("many threads lock in place: no update is lost") {
  World w;
  w.put("counter", 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&w] {
      for (int done = 0; done < 25;) {
        auto const version = [&w]() -> std::uint64_t {
          auto const tensor = w.store.get("counter");
          return tensor ? tensor.value().version : 0;
        }();
        auto exclusive = w.store.lock("counter", version);
        if (!exclusive) continue;
        auto const bytes = exclusive.value().bytes();
        bytes[0] = std::byte(std::to_integer<unsigned>(bytes[0]) + 1);
        exclusive.value().release_changed();
        ++done;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(first_byte(w.store.get("counter").value()) == 100);
  CHECK(w.store.get("counter").value().version == 101);
}
