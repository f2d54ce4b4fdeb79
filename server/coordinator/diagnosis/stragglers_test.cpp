#include "server/coordinator/diagnosis/stragglers.hpp"

#include <doctest/doctest.h>

using namespace chorus;
using namespace chorus::coordinator;

namespace {

api::Group group_of(std::uint32_t members, std::uint32_t epoch = 1) {
  api::Group group;
  group.name = "g";
  group.epoch = epoch;
  for (std::uint32_t rank = 0; rank < members; ++rank)
    group.members.push_back({rank, "w" + std::to_string(rank), "", "", {}, {}});
  return group;
}

std::vector<std::string> names(std::vector<api::SlowMember> const& slow) {
  std::vector<std::string> names;
  for (auto const& member : slow) names.push_back(member.worker);
  return names;
}

using Names = std::vector<std::string>;

// Records the listener's calls: "+w2", "-w2".
struct Told {
  explicit Told(Stragglers& stragglers) {
    stragglers.listen([this](api::Group const&, api::SlowMember const& member, bool is_slow) {
      names.push_back((is_slow ? "+" : "-") + member.worker);
    });
  }
  Names names;
};

}  // namespace

TEST_CASE("a rank that spends a much shorter time in an operation than the middle rank came late to it") {
  CHECK(lateness_s({0.102, 0.101, 0.002, 0.1}) == std::vector<double>{0, 0, 0.101 - 0.002, 0});
  CHECK(lateness_s({0.1, 0.02}) == std::vector<double>{0, 0.1 - 0.02});
  CHECK(lateness_s({0.02, 0.02, 0.1}) == std::vector<double>{0, 0, 0});       // the others did not wait for this rank
  CHECK(lateness_s({0.004, 0.0001, 0.004}) == std::vector<double>{0, 0, 0});  // too short to notice
  CHECK(lateness_s({1.0, 0.6, 1.0}) == std::vector<double>{0, 0, 0});         // most of it was work
  CHECK(lateness_s({1.0}) == std::vector<double>{0});
  CHECK(lateness_s({}).empty());
}

TEST_CASE("a member that is always late is named after eleven operations, and no longer when it keeps pace") {
  Stragglers stragglers;
  Told told(stragglers);
  auto const group = group_of(4);
  for (int i = 0; i < 10; ++i) stragglers.finished(group, {0.1, 0.1, 0.001, 0.1});
  CHECK(stragglers.slow(group).empty());
  stragglers.finished(group, {0.1, 0.1, 0.001, 0.1});
  REQUIRE(names(stragglers.slow(group)) == Names{"w2"});
  CHECK(stragglers.slow(group)[0].late_seconds == doctest::Approx(0.099));
  CHECK(slowness(stragglers.slow(group)[0]) == "rank 2 (w2) comes late to 51 % of the operations, by 99 ms");
  for (int i = 0; i < 12; ++i) stragglers.finished(group, {0.1, 0.1, 0.1, 0.1});
  CHECK(stragglers.slow(group).empty());
  CHECK(told.names == Names{"+w2", "-w2"});
}

TEST_CASE("members that are late in turn are not named") {
  Stragglers stragglers;
  auto const group = group_of(3);
  for (int i = 0; i < 90; ++i) {
    std::vector<double> durations_s(3, 0.1);
    durations_s[static_cast<std::size_t>(i % 3)] = 0.001;
    stragglers.finished(group, durations_s);
    CHECK(stragglers.slow(group).empty());
  }
}

TEST_CASE("calls without the coordinator are evaluated when every member has reported new ones") {
  Stragglers stragglers;
  auto const group = group_of(3);
  stragglers.reported(group, 0, {"g", 1, 100, 10.0});
  stragglers.reported(group, 1, {"g", 1, 101, 10.1});
  stragglers.reported(group, 0, {"g", 1, 150, 15.0});
  CHECK(stragglers.slow(group).empty());
  stragglers.reported(group, 2, {"g", 1, 120, 0.12});
  REQUIRE(names(stragglers.slow(group)) == Names{"w2"});
  // In the next window the member keeps pace: only new calls count.
  stragglers.reported(group, 0, {"g", 1, 350, 15.2});
  stragglers.reported(group, 1, {"g", 1, 301, 10.3});
  stragglers.reported(group, 2, {"g", 1, 320, 0.32});
  CHECK(stragglers.slow(group).empty());
}

TEST_CASE("impossible reports change nothing") {
  Stragglers stragglers;
  auto const group = group_of(2);
  stragglers.reported(group, 7, {"g", 1, 5, 1});
  stragglers.reported(group, 0, {"g", 1, 5, 1});
  stragglers.reported(group, 0, {"g", 1, 4, 1});
  stragglers.reported(group, 1, {"g", 1, 5, 1});
  stragglers.finished(group, {0.1, 0.1, 0.1});
  CHECK(stragglers.slow(group).empty());
}

TEST_CASE("a new epoch begins without history") {
  Stragglers stragglers;
  for (int i = 0; i < 20; ++i) stragglers.finished(group_of(3), {0.1, 0.1, 0.001});
  CHECK(names(stragglers.slow(group_of(3))) == Names{"w2"});
  CHECK(stragglers.slow(group_of(3, 2)).empty());
  stragglers.finished(group_of(3, 2), {0.1, 0.1, 0.001});
  CHECK(stragglers.slow(group_of(3, 2)).empty());
  stragglers.forget("g");
  CHECK(stragglers.slow(group_of(3, 2)).empty());
}
