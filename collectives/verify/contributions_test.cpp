#include "collectives/verify/contributions.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>

using namespace chorus::verify;

TEST_CASE("contributions of neighbouring ranks become one run in any order of sums") {
  Contributions values;
  auto const a = values.sum(values.input(3, 0), values.input(1, 0));
  CHECK(values.describe(a) == "chunk 0 of rank 1, chunk 0 of rank 3");
  CHECK(values.describe(values.sum(a, values.input(2, 0))) == "chunk 0 of ranks 1..3");
  CHECK(values.describe(values.sum(values.input(2, 1), values.input(2, 0))) == "chunk 0 of rank 2, chunk 1 of rank 2");
}

TEST_CASE("a contribution that is added twice counts twice") {
  Contributions values;
  auto const pair = values.sum(values.input(0, 5), values.input(1, 5));
  CHECK(values.describe(values.sum(pair, values.input(1, 5))) == "chunk 5 of rank 0, chunk 5 of rank 1 x2");
  CHECK(values.describe(values.sum(pair, pair)) == "chunk 5 of ranks 0..1 x2");
}

TEST_CASE("a value is complete if it has the same chunk of every rank once") {
  Contributions values;
  auto const both = values.sum(values.input(1, 4), values.input(0, 4));
  CHECK(values.complete(both, 2, 4));
  CHECK(values.complete(both, 2));
  CHECK_FALSE(values.complete(both, 2, 3));
  CHECK_FALSE(values.complete(both, 3, 4));
  CHECK_FALSE(values.complete(values.input(1, 4), 2));
  CHECK_FALSE(values.complete(values.sum(both, both), 2));
  CHECK_FALSE(values.complete(values.sum(values.input(0, 1), values.input(1, 2)), 2));
}

TEST_CASE("sums in any order have the counts of their parts") {
  std::minstd_rand random(7);
  for (int round = 0; round < 2000; ++round) {
    Contributions values;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> counts;  // (chunk, rank)
    std::vector<Contributions::Id> parts;
    for (auto n = 1 + random() % 20; n > 0; --n) {
      auto const rank = static_cast<std::uint32_t>(random() % 6), chunk = static_cast<std::uint32_t>(random() % 2);
      ++counts[{chunk, rank}];
      parts.push_back(values.input(rank, chunk));
    }
    auto const in_order = [&] {
      auto all = Contributions::undefined;
      for (auto const& [key, count] : counts)
        for (std::uint32_t n = 0; n < count; ++n) {
          auto const one = values.input(key.second, key.first);
          all = all == Contributions::undefined ? one : values.sum(all, one);
        }
      return all;
    }();
    while (parts.size() > 1) {
      std::swap(parts[random() % parts.size()], parts.back());
      auto const last = parts.back();
      parts.pop_back();
      auto& other = parts[random() % parts.size()];
      other = values.sum(other, last);
    }
    REQUIRE(values.describe(parts[0]) == values.describe(in_order));
  }
}
