#include "collectives/model/measured_levels.hpp"

#include <initializer_list>

#include "collectives/model/model_for_tests.hpp"
#include "collectives/model/select.hpp"

namespace chorus::model {
namespace {

LinkCost rack_after(std::initializer_list<double> bytes_per_s) {
  MeasuredLevels levels(round_numbers());
  for (auto const rate : bytes_per_s) levels.add(Level::rack, 1 / rate, rate);
  return levels.constants().link(Level::rack);
}

TEST_CASE("a level is as its first measured link, then as the median; of two links, as the faster") {
  CHECK(rack_after({1e8}).beta_s_per_byte == 1e-8);
  CHECK(rack_after({1e8, 5e7}).beta_s_per_byte == 1e-8);
  CHECK(rack_after({1e8, 5e7, 4e7}).beta_s_per_byte == 1 / 5e7);
  CHECK(rack_after({1e8, 5e7, 4e7}).alpha_s == 1 / 5e7);
}

TEST_CASE("one pair that measured beside others does not decide for all, and old measurements are forgotten") {
  CHECK(rack_after({1e8, 1e8, 2e7}).beta_s_per_byte == 1e-8);
  MeasuredLevels levels(round_numbers());
  for (std::size_t n = 0; n < MeasuredLevels::links_remembered; ++n) levels.add(Level::rack, 1e-6, 1e8);
  for (std::size_t n = 0; n <= MeasuredLevels::links_remembered / 2; ++n) {
    CHECK(levels.constants().link(Level::rack).beta_s_per_byte == 1e-8);
    levels.add(Level::rack, 1e-6, 1e7);
  }
  CHECK(levels.constants().link(Level::rack).beta_s_per_byte == 1e-7);
}

TEST_CASE("other levels stay as they were") {
  MeasuredLevels levels(round_numbers());
  levels.add(Level::rack, 1, 1);
  CHECK(levels.constants().link(Level::host).alpha_s == round_numbers().link(Level::host).alpha_s);
  CHECK(levels.constants().link(Level::zone).beta_s_per_byte == round_numbers().link(Level::zone).beta_s_per_byte);
}

TEST_CASE("slowness that a known uplink explains is no property of the links across it; more is") {
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
  // No message leaves the rack on the way to another host of it.
  MeasuredLevels levels(known);
  levels.add(Level::rack, 7e-6, 1 / 42e-9);
  CHECK(levels.constants().link(Level::rack).beta_s_per_byte == approximately(42e-9));
}

TEST_CASE("two racks whose uplink is known and was measured across: the plan is what it is without the measurement") {
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
