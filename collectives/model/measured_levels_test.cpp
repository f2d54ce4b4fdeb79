#include "collectives/model/measured_levels.hpp"

#include <initializer_list>

#include "collectives/model/choice/select.hpp"
#include "collectives/model/model_for_tests.hpp"

namespace chorus::model {
namespace {

LinkCost rack_after(std::initializer_list<double> bytes_per_s) {
  MeasuredLevels levels(round_numbers());
  for (auto const rate : bytes_per_s) levels.add(Level::rack, 1 / rate, rate);
  return levels.constants().link(Level::rack);
}

TEST_CASE("a level has the median of its measured links, and of two links the faster one") {
  CHECK(rack_after({1e8}).beta_s_per_byte == 1e-8);
  CHECK(rack_after({1e8, 5e7}).beta_s_per_byte == 1e-8);
  CHECK(rack_after({1e8, 5e7, 4e7}).beta_s_per_byte == 1 / 5e7);
  CHECK(rack_after({1e8, 5e7, 4e7}).alpha_s == 1 / 5e7);
}

TEST_CASE("one slow pair does not decide for its level, and old measurements are forgotten") {
  CHECK(rack_after({1e8, 1e8, 2e7}).beta_s_per_byte == 1e-8);
  MeasuredLevels levels(round_numbers());
  for (std::size_t n = 0; n < MeasuredLevels::links_remembered; ++n) levels.add(Level::rack, 1e-6, 1e8);
  for (std::size_t n = 0; n <= MeasuredLevels::links_remembered / 2; ++n) {
    CHECK(levels.constants().link(Level::rack).beta_s_per_byte == 1e-8);
    levels.add(Level::rack, 1e-6, 1e7);
  }
  CHECK(levels.constants().link(Level::rack).beta_s_per_byte == 1e-7);
}

TEST_CASE("a measurement does not change other levels") {
  MeasuredLevels levels(round_numbers());
  levels.add(Level::rack, 1, 1);
  CHECK(levels.constants().link(Level::host).alpha_s == round_numbers().link(Level::host).alpha_s);
  CHECK(levels.constants().link(Level::zone).beta_s_per_byte == round_numbers().link(Level::zone).beta_s_per_byte);
}

TEST_CASE("a link that a known uplink limits does not change its level; a much slower link does") {
  auto known = round_numbers();
  known.level[static_cast<std::size_t>(Level::zone)].beta_s_per_byte = 10e-9;
  known.uplink_s_per_byte[static_cast<std::size_t>(Level::rack)] = 40e-9;
  auto const zone_measured = [&](double s_per_byte) {
    MeasuredLevels levels(known);
    levels.add(Level::zone, 7e-6, 1 / s_per_byte);
    CHECK(levels.constants().link(Level::zone).alpha_s == 7e-6);
    return levels.constants().link(Level::zone).beta_s_per_byte;
  };
  CHECK(zone_measured(42e-9) == 10e-9);
  CHECK(zone_measured(80e-9) == approximately(80e-9));
  // A message between hosts of one rack does not cross the rack's uplink.
  MeasuredLevels levels(known);
  levels.add(Level::rack, 7e-6, 1 / 42e-9);
  CHECK(levels.constants().link(Level::rack).beta_s_per_byte == approximately(42e-9));
}

TEST_CASE("a measurement across the known uplink of two racks does not change the plan") {
  auto const racks = places("racks:2x4x1");
  auto known = defaults_for("racks:2x4x1;rack=100us,200Mbit/s;zone=100us,200Mbit/s;uplink_rack=50Mbit/s");
  MeasuredLevels levels(known);
  for (auto const rate : {5.9e6, 3e6, 5.9e6}) levels.add(Level::zone, 100e-6, rate);
  auto const choice = [&](Constants const& constants) { return select({}, racks, 1 << 20, 4, constants).value(); };
  CHECK(choice(levels.constants()).spec == choice(known).spec);
  CHECK(choice(levels.constants()).cost.seconds == approximately(choice(known).cost.seconds));
}

}  // namespace
}  // namespace chorus::model
