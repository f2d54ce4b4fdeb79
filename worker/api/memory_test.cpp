// Calls for which a member has no memory. An executable of its own, whose operator new fails where the story wants it.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/support/mentions.hpp"
#include "worker/api/testing/embedded_group.hpp"
#include "worker/api/testing/must.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/tensors/errc.hpp"

namespace {

constexpr std::size_t large = 4 << 20;
std::atomic<bool> next_large_one_fails{false};

}  // namespace

void* operator new(std::size_t bytes) {
  bool const fails = bytes >= large && next_large_one_fails.exchange(false);
  void* const memory = fails ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

using namespace chorus;
using namespace chorus::embedded::testing;
using chorus::testing::mentions;

namespace {

using Call = std::function<Status(JoinedGroup&, std::vector<float>&, CollectiveOptions const&)>;

// One of two members finds no memory for its part of the first call, whichever asks first. Both call once more.
void check_a_call_without_memory(Memory memory, Call const& call) {
  EmbeddedGroup fleet(2, memory);
  std::vector<Status> first(2, ok()), second(2, ok());
  std::vector<std::vector<float>> tensors(2, std::vector<float>(large / sizeof(float), 1));
  fleet.everywhere([](JoinedGroup& group, std::size_t) { must(group.barrier()); });
  next_large_one_fails = true;
  fleet.everywhere([&](JoinedGroup& group, std::size_t rank) {
    CollectiveOptions options{.compression = Compression(WireFormat::bf16), .timeout = std::chrono::seconds(60)};
    options.error_feedback = "gradients";
    first[rank] = call(group, tensors[rank], options);
    std::ranges::fill(tensors[rank], 10.0F);
    second[rank] = call(group, tensors[rank], options);
  });
  CHECK_FALSE(next_large_one_fails);
  for (auto const& status : first) REQUIRE(status.has_error());
  auto const lacked = first[0].error().code == tensors::TensorErrc::out_of_memory ? 0 : 1;
  CHECK(first[lacked].error().code == tensors::TensorErrc::out_of_memory);
  INFO(first[1 - lacked].error().detail);
  CHECK(first[1 - lacked].error().code == engine::EngineErrc::peer_lost);
  CHECK(mentions(first[1 - lacked].error().detail, "there was no memory for a call"));
  for (auto const& status : second) CHECK(status.has_error());
  for (auto const& tensor : tensors) CHECK(tensor.front() == 10);
}

}  // namespace

TEST_CASE("a member that has no memory for a call ends the epoch: its next call does not meet this one of the others") {
  for (auto const memory : {Memory::shared, Memory::own}) {
    check_a_call_without_memory(
        memory, [](auto& group, auto& tensor, auto const& options) { return group.all_reduce(tensor, options); });
    check_a_call_without_memory(memory, [](auto& group, auto& tensor, auto const& options) {
      return group.all_reduce_async(tensor, options).wait();
    });
  }
}
