#include "collectives/plan/sizes/rows.hpp"

#include <doctest/doctest.h>

using namespace chorus::plan;

TEST_CASE("the first dimension of a tensor counts its rows") {
  CHECK(rows_of({6, 4, 2}).count == 6);
  CHECK(rows_of({6, 4, 2}).elements == 8);
  CHECK(rows_of({}).count == 1);
  CHECK(with_rows({6, 4}, 24) == TensorShape{24, 4});
  CHECK(with_rows({}, 3) == TensorShape{3});
}

TEST_CASE("blocks are whole rows, and sizes of even blocks have no counts") {
  CHECK(split_rows(7, 3) == std::vector<std::uint64_t>{3, 2, 2});
  std::vector<std::uint64_t> const even{2, 2, 2}, uneven{3, 2, 2};
  CHECK(sizes_of_blocks(even, 4) == Sizes{24, {}, {}});
  CHECK(sizes_of_blocks(uneven, 4) == Sizes{0, {12, 8, 8}, {}});
  CHECK(sizes_of_exchange(even, even, 4) == Sizes{24, {}, {}});
  CHECK(sizes_of_exchange(even, uneven, 4) == Sizes{0, {8, 8, 8}, {12, 8, 8}});
}
