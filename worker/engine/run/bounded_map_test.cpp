#include "worker/engine/run/bounded_map.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <random>

using namespace chorus::engine;

TEST_CASE("the latest numbers are found, and older ones are not") {
  BoundedMap<int, 4> book;
  CHECK(book.find(7) == nullptr);
  for (int number = 1; number <= 6; ++number) book.at(static_cast<std::uint64_t>(number)) = number;
  for (std::uint64_t number = 1; number <= 2; ++number) CHECK(book.find(number) == nullptr);
  for (int number = 3; number <= 6; ++number) CHECK(*book.find(static_cast<std::uint64_t>(number)) == number);
}

TEST_CASE("a number that is known keeps its value and its age, and a new one finds what an old one has left") {
  BoundedMap<int, 2> book;
  book.at(1) = 10;
  book.at(2) = 20;
  CHECK(book.at(1) == 10);
  CHECK(book.at(3) == 10);
  CHECK(book.find(1) == nullptr);
  CHECK(*book.find(2) == 20);
}

TEST_CASE("drawn and counted numbers, in any order, are kept as a list would") {
  std::mt19937_64 random(1);
  BoundedMap<std::uint64_t, 64> book;
  std::deque<std::uint64_t> order;
  std::map<std::uint64_t, std::uint64_t> values;
  for (std::uint64_t turn = 1; turn < 20000; ++turn) {
    auto const number = turn % 3 == 0 ? turn : random() % 200 << (turn % 2 * 40);
    if (!values.contains(number)) {
      if (order.size() == 64) {
        values.erase(order.front());
        order.pop_front();
      }
      order.push_back(number);
    }
    book.at(number) = values[number] = turn;
    auto const other = random() % 200;
    auto const* const found = book.find(other);
    REQUIRE((found != nullptr) == values.contains(other));
    if (found != nullptr) REQUIRE(*found == values[other]);
  }
}
