// The table by which members' calls with compression "auto" decide.
#include <doctest/doctest.h>

#include <algorithm>

#include "collectives/model/choice/racks_for_tests.hpp"
#include "server/coordinator/topology/compression_table.hpp"
#include "server/coordinator/topology/selection_table.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using model::racks, model::with_links;

namespace {

std::vector<api::CompressionSelection> table_for(std::vector<Locality> const& localities,
                                                 model::Constants const& constants) {
  model::Network const network(localities, constants);
  return compression_table(network, selection_table(network).value());
}

// The lines for all_reduce of a dtype, the ones for small payloads first.
std::vector<api::CompressionSelection> lines(std::vector<api::CompressionSelection> table, std::uint32_t element_bytes,
                                             std::optional<std::string> const& between = std::nullopt) {
  std::erase_if(table, [&](auto const& line) {
    return line.op != "all_reduce" || line.element_bytes != element_bytes || line.between != between;
  });
  return table;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("on slow links codes of few bytes come first, for halves only those of one byte") {
  auto const table = table_for(racks(2), with_links(1e8));
  auto const floats = lines(table, 4);
  REQUIRE_FALSE(floats.empty());
  CHECK(floats.back().formats.front() == "int8");
  CHECK(floats.back().formats.size() == 4);
  CHECK_FALSE(floats.back().max_bytes.has_value());
  CHECK(floats.back().reason.find("at 4294967296 bytes elements ") == 0);
  CHECK(lines(table, 2).back().formats == Names{"int8", "fp8_e4m3"});
}

TEST_CASE("on fast links elements are faster") {
  auto const table = table_for(racks(2), with_links(1e12));
  for (auto const bytes : {2U, 4U})
    for (auto const& line : lines(table, bytes)) CHECK(line.formats.empty());
}

TEST_CASE("sizes that agree are one line, and the last has no end") {
  auto const floats = lines(table_for(racks(2), with_links(1e8)), 4);
  for (std::size_t i = 0; i + 1 < floats.size(); ++i) {
    CHECK(floats[i].max_bytes < floats[i + 1].max_bytes.value_or(~std::uint64_t{0}));
    CHECK(floats[i].formats != floats[i + 1].formats);
  }
}

TEST_CASE("codes between groups have lines for the levels that have several groups, on one host there are none") {
  auto constants = with_links(1e10);
  constants.level[static_cast<std::size_t>(Level::zone)].beta_s_per_byte = 1e-7;
  constants.uplink_s_per_byte[static_cast<std::size_t>(Level::rack)] = 1e-7;
  auto const table = table_for(racks(2), constants);
  CHECK(lines(table, 4, "rack").back().formats.front() == "int8");
  CHECK_FALSE(lines(table, 4, "host").empty());
  CHECK(lines(table, 4, "zone").empty());
  CHECK(table_for(std::vector<Locality>(3, Locality{"", "", "", "h"}), constants).empty());
}
