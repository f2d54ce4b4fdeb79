#include "collectives/plan/sizes/layout.hpp"

#include <doctest/doctest.h>

using namespace chorus::plan;

TEST_CASE("chunks partition the elements in order, and their sizes differ by one at most") {
  for (std::uint64_t elements = 0; elements <= 70; ++elements)
    for (std::uint32_t chunks = 1; chunks <= 70; ++chunks) {
      Layout const layout(elements, chunks);
      auto next = std::uint64_t{0};
      for (std::uint32_t c = 0; c < chunks; ++c) {
        auto const range = layout.range(c);
        REQUIRE(range.begin == next);
        REQUIRE(range.size() == elements / chunks + (c < elements % chunks ? 1 : 0));
        next = range.end;
      }
      REQUIRE(next == elements);
      REQUIRE(layout.range(0, chunks) == ElementRange{0, elements});
    }
}

TEST_CASE("five elements in four chunks are 2 1 1 1") {
  Layout const layout(5, 4);
  CHECK(layout.range(0) == ElementRange{0, 2});
  CHECK(layout.range(1) == ElementRange{2, 3});
  CHECK(layout.range(3) == ElementRange{4, 5});
  CHECK(layout.range(1, 2) == ElementRange{2, 4});
}

TEST_CASE("a layout has more elements than fit in 32 bits") {
  auto const elements = (std::uint64_t{1} << 62) + 3;
  Layout const layout(elements, 65536);
  CHECK(layout.range(65535).end == elements);
  CHECK(layout.range(3).size() == (std::uint64_t{1} << 46));
  CHECK(layout.range(2).size() == (std::uint64_t{1} << 46) + 1);
}

TEST_CASE("blocks are cut first, so that their borders do not depend on the chunks in them") {
  Layout const layout(6, 4, 8);  // 2 2 1 1, each in two
  CHECK(layout.range(0, 2) == ElementRange{0, 2});
  CHECK(layout.range(4, 2) == ElementRange{4, 5});
  CHECK(layout.range(5) == ElementRange{5, 5});
  CHECK(layout.range(6) == ElementRange{5, 6});
  CHECK_FALSE(layout.is_equal());
  CHECK(Layout(16, 4, 8).is_equal());
}

TEST_CASE("the sizes of blocks are the counts") {
  std::vector<std::uint64_t> const counts{0, 5, 1};
  Layout const layout(counts, 6);
  CHECK(layout.elements() == 6);
  CHECK(layout.range(0, 2) == ElementRange{0, 0});
  CHECK(layout.range(2) == ElementRange{0, 3});
  CHECK(layout.range(3) == ElementRange{3, 5});
  CHECK(layout.range(4, 2) == ElementRange{5, 6});
}

TEST_CASE("blocks that are numbered by position lie in the vector by rank") {
  std::vector<std::uint64_t> const counts{2, 0, 4, 1};  // in the vector: 0..2, 2..2, 2..6, 6..7
  std::vector<std::uint32_t> const by_position{2, 3, 0, 1};
  Layout const layout(counts, by_position, 8);
  CHECK(layout.elements() == 7);
  CHECK(layout.range(0, 2) == ElementRange{0, 4});  // as if chunks lay in their order
  CHECK(layout.range(4, 4) == ElementRange{5, 7});
  CHECK(layout.piece(0, 1) == Piece{2, 2, 1});
  CHECK(layout.piece(1, 1) == Piece{4, 2, 1});
  CHECK(layout.piece(0, 8) == Piece{2, 5, 4});  // of ranks 2 and 3, which are contiguous
  CHECK(layout.piece(4, 4) == Piece{0, 2, 4});  // of ranks 0 and 1
  CHECK(layout.piece(5, 2) == Piece{1, 1, 2});
}

TEST_CASE("all chunks are one piece if blocks are numbered by rank") {
  CHECK(Layout(6, 4, 8).piece(1, 5) == Piece{1, 4, 5});
  CHECK(Layout(7, 4).piece(0, 4) == Piece{0, 7, 4});
}
