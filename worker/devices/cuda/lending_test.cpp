// An arena that another process reads in place, and everything that can prevent it.
#include "worker/devices/cuda/lending.hpp"

#include <doctest/doctest.h>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/testing/gpu_double.hpp"

using namespace chorus;
using namespace chorus::devices;
using namespace chorus::devices::testing;

namespace {

// A GPU of one process, and the same or another GPU in a second process.
struct TwoProcesses {
  explicit TwoProcesses(std::uint32_t other = 0)
      : own_lender(std::make_unique<GpuDouble>(0)),
        own_reader(std::make_unique<GpuDouble>(other)),
        lender(*own_lender),
        reader(*own_reader),
        lends(std::move(own_lender), {.arena_bytes = 1 << 20}),
        reads(std::move(own_reader), {.arena_bytes = 1 << 20}) {}

  std::unique_ptr<GpuDouble> own_lender, own_reader;
  GpuDouble& lender;
  GpuDouble& reader;
  GpuUnit lends, reads;
};

constexpr std::uint64_t proof = 0x1234;

Result<std::shared_ptr<BorrowedArena const>> borrow(TwoProcesses& host, LentArena const& lent,
                                                    std::uint64_t expected = proof) {
  auto const borrowing = Borrowing::begin(host.reads, lent, expected);
  if (!borrowing) return borrowing.error();
  return (*borrowing)->arena();
}

std::string refusal(TwoProcesses& host, LentArena const& lent, std::uint64_t expected = proof) {
  auto const borrowed = borrow(host, lent, expected);
  CHECK(host.reader.opened() == (borrowed.has_value() ? 1 : 0));
  return borrowed.has_value() ? "none" : borrowed.error().detail;
}

}  // namespace

TEST_CASE("an arena that is lent is read in place, as long as it is held") {
  TwoProcesses host;
  auto const memory = host.lends.acquire(100).value();
  host.lender.behind(memory->bytes()).front() = std::byte{42};
  auto const lent = host.lends.lend(proof).value();
  CHECK(host.lends.lend(proof).value().proof_at == lent.proof_at);
  auto borrowed = borrow(host, lent).value();
  CHECK(host.reader.behind(borrowed->bytes()).front() == std::byte{42});
  borrowed.reset();
  CHECK(host.reader.opened() == 0);
}

TEST_CASE("an arena that cannot be read in place is refused, with the reason") {
  TwoProcesses host;
  auto const lent = host.lends.lend(proof).value();
  CHECK(refusal(host, lent, proof + 1) == "cuda:0: the memory of the handle is not the arena that was meant");
  auto larger = lent;
  larger.bytes += 4096;
  CHECK(refusal(host, larger) == "cuda:0: the memory of the handle has 1048576 bytes, 1052672 were said to be there");
  auto beyond = lent;
  beyond.proof_at = ~std::uint64_t{0};
  CHECK(refusal(host, beyond).ends_with("its proof is said to lie at byte 18446744073709551615"));
  host.reader.open_nothing("cudaIpcOpenMemHandle: cudaErrorInvalidResourceHandle (invalid resource handle)");
  CHECK(refusal(host, lent).find("invalid resource handle") != std::string::npos);
}

TEST_CASE("an arena of another GPU is read if there is peer access") {
  TwoProcesses host(1);
  auto const lent = host.lends.lend(proof).value();
  CHECK(refusal(host, lent) == "cuda:1: the double has no peer access to " + lent.uuid);
  host.reader.neighbour(lent.uuid);
  CHECK(refusal(host, lent) == "none");
}

TEST_CASE("memory that was freed and given out again is not the arena that was lent") {
  GpuDouble gpu;
  TwoProcesses host;
  auto arena = GpuArena::reserve(gpu, 4096).value();
  LentArena const lent{gpu.share(arena->bytes().data()).value(), gpu.info().uuid, 4096, 0};
  arena.reset();
  auto const next = GpuArena::reserve(gpu, 4096).value();
  CHECK(refusal(host, lent) == "cuda:0: the memory of the handle is not the arena that was meant");
}

TEST_CASE("neither the lender nor the borrower waits for a busy device") {
  TwoProcesses host;
  host.lender.hang();
  CHECK(host.lends.lend(proof).error().detail == "cuda:0: it has not come to writing its proof yet");
  CHECK(host.lends.lend(proof).has_error());
  host.lender.go_on();
  auto const lent = host.lends.lend(proof).value();
  host.reader.hang();
  auto const borrowing = Borrowing::begin(host.reads, lent, proof).value();
  CHECK(borrowing->arena().value() == nullptr);
  CHECK_FALSE(borrowing->rests());
  host.reader.go_on();
  CHECK(borrowing->arena().value() != nullptr);
  CHECK(borrowing->rests());
  CHECK(!host.lends.lost());
  CHECK(!host.reads.lost());
}
