#include "collectives/topology/shape_spec.hpp"

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "collectives/core/errc.hpp"
#include "collectives/topology/orders/order.hpp"

using namespace chorus;
using namespace chorus::topology;

namespace {

ShapeSpec shape(std::string_view text) { return parse_shape(text).value(); }

std::string complaint(std::string_view text) {
  auto const parsed = parse_shape(text);
  REQUIRE(parsed.has_error());
  CHECK(parsed.error().code == PlanErrc::bad_parameter);
  return parsed.error().detail;
}

Level level(ShapeSpec const& spec, std::size_t a, std::size_t b) {
  return shared_level(spec.localities[a], spec.localities[b]);
}

std::optional<Link> link(ShapeSpec const& spec, Level of) { return spec.links[static_cast<std::size_t>(of)]; }

}  // namespace

TEST_CASE("flat is that many hosts under one switch") {
  auto const flat = shape("flat:3");
  CHECK(flat.localities == std::vector<Locality>{{"", "", "", "h0"}, {"", "", "", "h1"}, {"", "", "", "h2"}});
  CHECK(flat.links == decltype(flat.links){});
  CHECK(flat.uplink_gbyte_per_s == decltype(flat.uplink_gbyte_per_s){});
}

TEST_CASE("every level of a shape is one of localities") {
  auto const hosts = shape("hosts:4x8");
  CHECK(hosts.localities.size() == 32);
  CHECK(level(hosts, 0, 7) == Level::host);
  CHECK(level(hosts, 7, 8) == Level::rack);

  auto const all = shape("regions:2x3x4x5x6");
  CHECK(all.localities.size() == 720);
  CHECK(all.localities.back() == Locality{"g1", "z2", "r3", "h4"});
  CHECK(level(all, 0, 5) == Level::host);
  CHECK(level(all, 0, 29) == Level::rack);
  CHECK(level(all, 0, 119) == Level::zone);
  CHECK(level(all, 0, 359) == Level::region);
  CHECK(level(all, 0, 360) == Level::world);

  CHECK(level(shape("racks:2x1x1"), 0, 1) == Level::zone);
  CHECK(level(shape("zones:2x1x1x1"), 0, 1) == Level::region);
  CHECK(shape("hosts:1x1").localities.size() == 1);
}

TEST_CASE("ranks are laid out so that a ring crosses every level as rarely as possible") {
  auto const spec = shape("zones:2x3x2x4");
  std::vector<std::uint32_t> as_given(spec.localities.size());
  for (std::uint32_t i = 0; i < as_given.size(); ++i) as_given[i] = i;
  CHECK(order_by_locality(spec.localities) == as_given);
}

TEST_CASE("overrides give links and uplinks in any unit") {
  auto const spec = shape(
      "racks:2x2x2;host=15us,4GB/s;rack=0.5ms,20Gbit/s;world=2s,125kB/s;uplink_rack=100Gbit/s;uplink_host=800kbit/s");
  CHECK(link(spec, Level::host) == Link{15 * 1e-6, 4});
  CHECK(link(spec, Level::rack) == Link{0.5 * 1e-3, 2.5});
  CHECK(link(spec, Level::world) == Link{2, 125 * 1e-6});
  CHECK(link(spec, Level::zone) == std::nullopt);
  CHECK(spec.uplink_gbyte_per_s[static_cast<std::size_t>(Level::rack)] == 12.5);
  CHECK(spec.uplink_gbyte_per_s[static_cast<std::size_t>(Level::host)] == doctest::Approx(1e-4));
  CHECK(spec.uplink_gbyte_per_s[static_cast<std::size_t>(Level::region)] == std::nullopt);
  CHECK(link(shape("flat:2;zone=0s,2TB/s"), Level::zone) == Link{0, 2000});
  CHECK(link(shape("flat:2;zone=7ns,8Tbit/s"), Level::zone) == Link{7 * 1e-9, 1000});
  CHECK(link(shape("flat:2;region=1ns,8Mbit/s"), Level::region)->bandwidth_gbyte_per_s == doctest::Approx(1e-3));
  CHECK(link(shape("flat:2;region=1ns,8MB/s"), Level::region)->bandwidth_gbyte_per_s == 8e-3);
}

TEST_CASE("up to 65536 workers") {
  CHECK(shape("flat:65536").localities.size() == 65536);
  CHECK(shape("hosts:256x256").localities.size() == 65536);
  for (auto const* text :
       {"flat:65537", "hosts:256x257", "regions:65536x65536x65536x65536x65536", "hosts:65537x4294967295"})
    CHECK(complaint(text).ends_with("has too many workers; expected at most 65536 in all"));
}

TEST_CASE("a malformed shape is answered with what would be possible") {
  CHECK(complaint("hosts=4x8") ==
        "topology part 'hosts=4x8' is no shape; expected flat:P, hosts:HxW, racks:RxHxW, zones:ZxRxHxW or "
        "regions:GxZxRxHxW, as in hosts:4x8");
  for (auto const* text :
       {"",          "flat",      "flat:",     "flat:0",      "flat:-1",   "flat:+4",
        "flat: 4",   "flat:4 ",   "flat:4x",   "flat:4x2",    "hosts:4",   "hosts:4x",
        "hosts:x4",  "hosts:0x4", "hosts:4x0", "hosts:4x2x2", "hosts:4X2", "hosts:4x99999999999999999999",
        "racks:1x2", "cube:4",    ":4",        "Flat:4",      "4x8",       "flat:1e3",
        "flat:0x10", "flat:4.5",  "flat:nan"})
    CHECK(complaint(text).find("regions:GxZxRxHxW") != std::string::npos);
}

TEST_CASE("a malformed override is answered with what would be possible") {
  CHECK(
      complaint("flat:4;spine=1us,1GB/s").starts_with("topology part 'spine=1us,1GB/s' names no level; expected host"));
  CHECK(
      complaint("flat:4;rack=1us,1GB/s;rack=1us,1GB/s").ends_with("comes a second time; expected each override once"));
  CHECK(complaint("flat:4;uplink_rack=1GB/s;uplink_rack=2GB/s").find("second time") != std::string::npos);
  for (auto const* part : {"", ";", "rack", "rack=", "rack=1us", "=1us,1GB/s", "uplink_world=1GB/s", "uplink_=1GB/s",
                           "uplink=1GB/s", "RACK=1us,1GB/s", "rack=1GB/s"})
    CHECK(complaint("flat:4;" + std::string(part)).find("uplink_zone or uplink_region=BANDWIDTH") != std::string::npos);
  for (auto const* latency : {"", "1", "us", "-1us", "+1us", "nanus", "infs", "1e3us", " 1us", "1 us", "1US", "3601s",
                              "1m", "99999999999999999999s"})
    CHECK(complaint("flat:4;rack=" + std::string(latency) + ",1GB/s").find("in ns, us, ms or s") != std::string::npos);
  for (auto const* bandwidth : {"", "1", "GB/s", "0GB/s", "-1GB/s", "nanGB/s", "infGB/s", "1GB", "1gb/s", "1Gb/s",
                                "1001TB/s", "0.0000001kbit/s", "1GB/s,", "1GB/s ", "0x1GB/s"}) {
    CHECK(complaint("flat:4;rack=1us," + std::string(bandwidth)).find("Tbit/s") != std::string::npos);
    CHECK(complaint("flat:4;uplink_rack=" + std::string(bandwidth)).find("Tbit/s") != std::string::npos);
  }
  CHECK(complaint(std::string(100000, 'x')).size() < 400);
}

TEST_CASE("garbage is refused or parsed, and never anything else") {
  std::minstd_rand random(7);
  std::string const good = "racks:2x4x8;host=15us,4GB/s;uplink_rack=100Gbit/s";
  for (int round = 0; round < 20000; ++round) {
    auto text = good;
    for (auto edits = 1 + random() % 4; edits > 0; --edits) {
      auto const at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = static_cast<char>(random() % 256);
      else
        text = text.substr(0, at) + text.substr(random() % text.size());
      if (text.empty()) text = ";";
    }
    auto const parsed = parse_shape(text);
    if (parsed) {
      CHECK(!parsed->localities.empty());
      CHECK(parsed->localities.size() <= 65536);
    } else {
      CHECK(parsed.error().detail.find("expected") != std::string::npos);
    }
  }
}

TEST_CASE("a topology fits as many ranks as it has workers") {
  CHECK(check_ranks(shape("hosts:4x8"), 32).has_value());
  CHECK(check_ranks(shape("hosts:4x8"), 16).error().detail ==
        "the topology has 32 workers, the request 16 ranks; expected as many, as in flat:16");
}
