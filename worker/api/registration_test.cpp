// Memory of a program's own that is registered with its worker.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>

#include "tests/support/mentions.hpp"
#include "worker/api/testing/embedded_group.hpp"
#include "worker/api/testing/must.hpp"
#include "worker/memory/pages/errc.hpp"

using namespace chorus;
using namespace chorus::embedded::testing;
using chorus::testing::mentions;

namespace {

constexpr std::size_t elements = 3 << 20;

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};

// As a program has it that knows nothing of workers.
std::unique_ptr<float[], Free> own_memory() {
  return std::unique_ptr<float[], Free>(static_cast<float*>(std::aligned_alloc(2 << 20, elements * sizeof(float))));
}

}  // namespace

TEST_CASE("registered memory is reduced where it lies, and is the program's own again afterwards") {
  EmbeddedGroup fleet(2);
  fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
    auto const memory = own_memory();
    std::span const tensor(memory.get(), elements);
    std::fill(tensor.begin(), tensor.end(), static_cast<float>(rank + 1));
    {
      auto const registration = fleet.workers[rank].register_memory(tensor).value();
      must(group.all_reduce(tensor));
      MUST(group.path() == "shm");
      MUST(std::all_of(tensor.begin(), tensor.end(), [](float x) { return x == 3; }));
    }
    MUST(tensor[elements - 1] == 3);
    must(group.all_reduce(tensor));
    MUST(tensor[elements - 1] == 6);
  });
}

TEST_CASE("a registration may outlive its worker and its group") {
  auto const memory = own_memory();
  std::span const tensor(memory.get(), elements);
  std::optional<Worker::Registration> registration;
  {
    FakeCoordinator coordinator;
    auto worker = Worker::start(test_options("w0", coordinator.url())).value();
    registration = worker.register_memory(tensor).value();
    tensor[7] = 7;
  }
  tensor[8] = 8;
  registration.reset();
  CHECK(tensor[7] + tensor[8] == 15);
}

TEST_CASE("a worker that shares no memory registers none, and memory that is not whole pages is refused") {
  FakeCoordinator coordinator;
  auto const memory = own_memory();
  auto alone = Worker::start(test_options("w0", coordinator.url(), Memory::own)).value();
  auto const none = alone.register_memory(std::span(memory.get(), elements));
  REQUIRE(none.has_error());
  CHECK(none.error().code == memory::MemoryErrc::not_shared);
  auto worker = Worker::start(test_options("w1", coordinator.url())).value();
  auto const part = worker.register_memory(std::span(memory.get() + 1, elements - 1));
  REQUIRE(part.has_error());
  CHECK(part.error().code == memory::MemoryErrc::out_of_range);
  CHECK(mentions(part.error().detail, "not whole pages"));
}
