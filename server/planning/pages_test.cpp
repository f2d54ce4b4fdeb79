#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "collectives/algorithms/catalogue.hpp"
#include "server/planning/algorithm_page.hpp"
#include "server/planning/crossover.hpp"
#include "server/planning/measures.hpp"
#include "server/planning/picture.hpp"

using namespace chorus;
using namespace chorus::planning;
using plan::Spec;

namespace {

Measure measured(plan::Algorithm const& algorithm, Op op, std::uint32_t ranks) {
  return measure(algorithm, {.op = op, .algorithm = std::string(algorithm.name), .ranks = ranks});
}

// Returns the committed file, after writing it if CHORUS_WRITE_DOCS is set.
std::string committed(std::string const& file, std::string const& text) {
  auto const path = std::filesystem::path(CHORUS_SOURCE_DIR) / "docs/reference" / file;
  if (std::getenv("CHORUS_WRITE_DOCS") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::ostringstream page;
  page << std::ifstream(path).rdbuf();
  return page.str();
}

// Avoids CHECK on the texts, which would print both pages.
void check_committed(std::string const& file, std::string const& text) {
  CAPTURE(file);
  bool const is_current = committed(file, text) == text;
  CHECK(is_current);
}

bool is_well_formed(std::string const& svg) {
  static std::regex const element("<(/?)([a-z]+)([^<>]*?)(/?)>");
  std::vector<std::string> open;
  for (std::sregex_iterator at(svg.begin(), svg.end(), element), end; at != end; ++at) {
    auto const& match = *at;
    if (match[1].length() > 0) {
      if (open.empty() || open.back() != match[2]) return false;
      open.pop_back();
    } else if (match[4].length() == 0) {
      open.push_back(match[2]);
    }
  }
  return open.empty() && svg.starts_with("<svg ") && svg.find("<script") == std::string::npos &&
         svg.find("nan") == std::string::npos;
}

}  // namespace

TEST_CASE("formulas agree with textbooks") {
  auto const ring = measured(algorithms::ring, Op::all_reduce, 8);
  CHECK(ring.steps == 14);
  CHECK(ring.sent == doctest::Approx(2 * 7.0 / 8));
  CHECK(to_text(ring.whole) == "14 α + 1.75 nβ + 0.88 nγ");
  CHECK(to_text(measured(algorithms::centralized, Op::all_reduce, 8).whole) == "14 α + 14 nβ + 7 nγ");
  CHECK(to_text(measured(algorithms::recursive_doubling, Op::all_reduce, 64).whole) == "6 α + 6 nβ + 6 nγ");
  CHECK(to_text(measured(algorithms::halving_doubling, Op::all_reduce, 64).whole) == "12 α + 1.97 nβ + 0.98 nγ");
  CHECK(to_text(measured(algorithms::binomial, Op::broadcast, 64).whole) == "6 α + 6 nβ");
  CHECK(to_text(measured(algorithms::chain, Op::broadcast, 64).whole) == "63 α + 63 nβ");
  CHECK(to_text(measured(algorithms::chain, Op::broadcast, 64).segmented) == "63 α + nβ");
  CHECK(to_text(measured(algorithms::recursive_doubling, Op::barrier, 64).whole) == "6 α");
  CHECK(to_text({}) == "0");
  CHECK(to_text({1, 1, 1}) == "α + nβ + nγ");
}

TEST_CASE("a picture has an arrow for every message, and no external content") {
  for (auto const* algorithm : algorithms::all()) {
    CAPTURE(algorithm->name);
    auto const spec = spec_to_draw(*algorithm);
    CHECK(spec.ranks >= 4);
    CHECK(spec.ranks <= 8);
    CHECK(is_well_formed(picture(*algorithm, spec)));
  }
  auto const arrows = [](std::string const& svg) {
    std::size_t count = 0;
    for (auto at = svg.find("<polygon"); at != std::string::npos; at = svg.find("<polygon", at + 1)) ++count;
    return count;
  };
  constexpr std::size_t in_legend = 2;
  CHECK(arrows(picture(algorithms::ring, {.algorithm = "ring", .ranks = 4})) == 6 * 4 + in_legend);
  CHECK(arrows(picture(algorithms::centralized, {.algorithm = "centralized", .ranks = 4})) == 6 + in_legend);
  CHECK(arrows(picture(algorithms::ring, {.algorithm = "ring", .ranks = 1})) == in_legend);
}

TEST_CASE("a crossover has every point's winner and second, and draws them") {
  auto const found = crossover({.ranks_max = 8}, model::Constants::defaults()).value();
  CHECK(found.ranks == std::vector<std::uint32_t>{2, 4, 8});
  CHECK(found.bytes.front() == 4);
  CHECK(found.bytes.back() == 1 << 30);
  for (auto const& column : found.winners) {
    REQUIRE(column.size() == found.bytes.size());
    for (auto const& winner : column) {
      CHECK(winner.seconds > 0);
      CHECK(winner.seconds <= winner.second_seconds);
      CHECK(winner.algorithm != winner.second);
    }
    // Longer vectors take longer.
    for (std::size_t row = 1; row < column.size(); ++row) CHECK(column[row - 1].seconds <= column[row].seconds);
  }
  CHECK(is_well_formed(to_svg(found)));
  CHECK(crossover({.op = Op::barrier, .ranks_max = 8}, model::Constants::defaults()).value().bytes.size() == 1);
  CHECK(crossover({.placement = "hosts:4", .ranks_max = 16}, model::Constants::defaults()).value().ranks ==
        std::vector<std::uint32_t>{4, 8, 16});
}

TEST_CASE("placements become topologies, and a malformed one is refused") {
  CHECK(topology_of("flat", 8).value() == "flat:8");
  CHECK(topology_of("host", 8).value() == "hosts:1x8");
  CHECK(topology_of("hosts:4;rack=25us,25Gbit/s", 8).value() == "hosts:2x4;rack=25us,25Gbit/s");
  for (auto const* wrong : {"", "hosts", "hosts:", "hosts:0", "hosts:4x", "flat:8", "hosts:-1", "racks:2"}) {
    CAPTURE(wrong);
    CHECK(topology_of(wrong, 8).error().detail.find("hosts:W") != std::string::npos);
  }
  CHECK(topology_of("hosts:3", 8).has_error());
  CHECK(crossover({.placement = "flat;rack=fast", .ranks_max = 2}, model::Constants::defaults()).has_error());
}

TEST_CASE("docs/reference/algorithms.md and its pictures are made by the commands; CHORUS_WRITE_DOCS=1 writes them") {
  auto const constants = model::Constants::defaults();
  check_committed("algorithms.md", algorithm_page(constants));
  for (auto const* algorithm : algorithms::all())
    check_committed("algorithms/" + std::string(algorithm->name) + ".svg",
                    picture(*algorithm, spec_to_draw(*algorithm)));
  check_committed("algorithms/crossover_flat.svg", to_svg(crossover({.placement = "flat"}, constants).value()));
  check_committed("algorithms/crossover_hosts.svg", to_svg(crossover({.placement = "hosts:8"}, constants).value()));
}
