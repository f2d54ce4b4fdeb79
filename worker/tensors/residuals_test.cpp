// Residuals of tensors: kept by runs that succeed, and dropped with the tensor, the group's epoch and the size.
#include "worker/tensors/residuals.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "worker/tensors/errc.hpp"
#include "worker/tensors/store.hpp"

using namespace chorus;
using namespace chorus::tensors;

namespace {

constexpr std::size_t elements = 100;

struct Kept {
  Pool pool{0, 1 << 20};
  Store store;

  std::shared_ptr<Residuals::Use> use(std::string const& tensor, std::string const& group = "g",
                                      std::uint32_t epoch = 1, std::size_t size = elements) {
    return store.residuals().use(tensor, group, epoch, pool.acquire(size * sizeof(float)).value()).value();
  }
  void keep(std::string const& tensor, float value, std::string const& group = "g") {
    auto const run = use(tensor, group);
    std::ranges::fill(run->lost(), value);
    run->keep();
  }
  // 0 where there is none.
  float value(std::string const& tensor, std::string const& group = "g", std::uint32_t epoch = 1) {
    auto const run = use(tensor, group, epoch);
    return run->residual().empty() ? 0 : run->residual()[elements - 1];
  }
};

}  // namespace

TEST_CASE("a residual is that of the last run that kept it, for each tensor and group") {
  Kept kept;
  CHECK(kept.value("x") == 0);
  kept.keep("x", 1);
  kept.keep("y", 2);
  kept.keep("x", 3, "h");
  std::ranges::fill(kept.use("x")->lost(), 9.0F);  // a run that fails
  CHECK(kept.value("x") == 1);
  CHECK(kept.value("y") == 2);
  CHECK(kept.value("x", "h") == 3);
  CHECK(kept.store.residuals().bytes() == 3 * elements * sizeof(float));
  CHECK(kept.pool.in_use_bytes() >= kept.store.residuals().bytes());
}

TEST_CASE("one run at a time uses a residual") {
  Kept kept;
  auto const first = kept.use("x");
  auto const second = kept.store.residuals().use("x", "g", 1, kept.pool.acquire(4).value());
  REQUIRE(second.has_error());
  CHECK(second.error().code == TensorErrc::busy);
  CHECK(kept.value("y") == 0);
}

TEST_CASE("a new epoch, another size and the end of a group or tensor drop residuals, and give memory back") {
  Kept kept;
  auto const data = kept.pool.acquire(4).value();
  auto const without = kept.pool.in_use_bytes();
  auto& residuals = kept.store.residuals();
  kept.keep("x", 1);
  CHECK(kept.value("x", "g", 2) == 0);
  CHECK(residuals.bytes() == 0);
  kept.keep("x", 1);
  CHECK(kept.use("x", "g", 1, elements + 1)->residual().empty());
  CHECK(residuals.bytes() == 0);
  kept.keep("x", 1);
  kept.keep("x", 1, "h");
  residuals.drop_group("g");
  CHECK(residuals.bytes() == elements * sizeof(float));
  REQUIRE(kept.store.put("x", Dtype::f32, {1}, data, std::nullopt).has_value());
  REQUIRE(kept.store.erase("x", std::nullopt).has_value());
  CHECK(residuals.bytes() == 0);
  CHECK(kept.pool.in_use_bytes() == without);
}

TEST_CASE("a residual that is dropped during a run stays dropped") {
  Kept kept;
  auto run = kept.use("x");
  kept.store.residuals().drop_tensor("x");
  run->keep();
  run.reset();
  CHECK(kept.store.residuals().bytes() == 0);
  CHECK(kept.pool.in_use_bytes() == 0);
}
