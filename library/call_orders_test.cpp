// Calls in random orders, right and wrong ones, from two threads. What counts is what a sanitizer says, and that every
// function returns, with a status that it may return. Runs CHORUS_SEEDS seeds.
#include <doctest/doctest.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "library/testing/random_calls.hpp"

using namespace chorus::library::testing;

namespace {

std::uint64_t seeds() {
  std::uint64_t count = 12;
  if (char const* const given = std::getenv("CHORUS_SEEDS")) {
    std::string_view const text(given);
    std::from_chars(text.data(), text.data() + text.size(), count);
  }
  return count;
}

std::vector<chorus_worker_t*> handles(std::vector<Worker> const& workers) {
  std::vector<chorus_worker_t*> list;
  for (auto const& worker : workers) list.push_back(worker.get());
  return list;
}

}  // namespace

TEST_CASE("wrong calls between right ones are refused, and the right ones give what they should") {
  for (bool const shares_memory : {true, false}) {
    Pair pair(shares_memory);
    for (std::uint64_t seed = 1; seed <= seeds(); ++seed)
      pair.both([&](chorus_group_t* group, std::uint32_t rank) {
        Dice agreed(seed), own(2 * seed + rank);
        RandomCalls calls(2 * seed + rank, {}, {});
        auto const options = options_of(60'000);
        for (int call = 0; call < 50; ++call) {
          while (own.one_in(2)) calls.make_wrong_one(group);
          auto numbers = of_rank(rank);
          auto const x = tensor(numbers);
          switch (agreed.below(3)) {
            case 0:
              MUST(chorus_all_reduce(group, nullptr, &x, &options, nullptr) == CHORUS_OK);
              MUST(numbers == (Numbers{11, 22, 33, 44}));
              break;
            case 1: {
              chorus_request_t* request = nullptr;
              MUST(chorus_broadcast_async(group, &x, &options, &request, nullptr) == CHORUS_OK);
              Request const begun(request);
              calls.make_wrong_one(group);
              MUST(chorus_request_wait(request, nullptr) == CHORUS_OK);
              MUST(numbers == of_rank(0));
              break;
            }
            default:
              MUST(chorus_all_to_all(group, nullptr, &x, &options, nullptr) == CHORUS_OK);
              MUST(numbers == (rank == 0 ? Numbers{1, 2, 10, 20} : Numbers{3, 4, 30, 40}));
          }
        }
      });
  }
}

TEST_CASE("two threads that call anything in any order, on the same groups and workers, get answers") {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    INFO("seed " << seed);
    Pair pair(seed % 2 == 0);
    auto const workers = handles(pair.workers);
    std::vector<chorus_group_t*> const groups{pair.groups[0].get(), pair.groups[1].get()};
    pair.both([&](chorus_group_t*, std::uint32_t thread) {
      RandomCalls calls(2 * seed + thread, workers, groups);
      for (int call = 0; call < 150; ++call) calls.make_one();
    });
  }
}

TEST_CASE("every call on what a stopped worker has left ends, and so does every free") {
  for (std::uint64_t seed = 1; seed <= seeds(); ++seed) {
    INFO("seed " << seed);
    Pair pair(seed % 2 == 0);
    auto const workers = handles(pair.workers);
    std::vector<chorus_group_t*> const groups{pair.groups[0].get(), pair.groups[1].get()};
    RandomCalls before(seed, workers, groups), after(~seed, workers, groups);
    for (int call = 0; call < 30; ++call) before.make_one();
    for (auto* const worker : workers) CHECK(chorus_worker_stop(worker, nullptr) == CHORUS_OK);
    for (int call = 0; call < 100; ++call) (call % 2 == 0 ? before : after).make_one();
    if (seed % 3 == 0) pair.workers.clear();
    for (auto* const group : groups) CHECK(chorus_barrier(group, nullptr, nullptr) != CHORUS_OK);
  }
}
