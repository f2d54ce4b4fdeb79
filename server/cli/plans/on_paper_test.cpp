// Commands without a coordinator: plans of groups on paper, and their verification.
#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/plan/text/text.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/json/json.hpp"
#include "server/cli/testing/test_support.hpp"

using namespace chorus;
using namespace chorus::cli;

TEST_CASE("verify ends with its totals") {
  auto const machine = chorus::cli::chorus({"verify", "--max-ranks", "3", "--json"});
  CHECK(machine.status == 0);
  CHECK(machine.out == R"({"plans":736,"failed":0,"max_ranks":3})"
                       "\n");
  CHECK(chorus::cli::chorus({"verify", "--max-ranks", "3"}).out == machine.out);  // standard output is no terminal
  CHECK(chorus::cli::chorus({"verify", "--max-ranks", "3", "--table"}).out ==
        "all 736 plans for 1 to 3 ranks are correct\n");
}

TEST_CASE("a group on paper is planned without a coordinator") {
  auto const run = chorus::cli::chorus({"plan", "--ranks", "4", "--bytes", "64M", "--algorithm", "ring", "--json"});
  CHECK(run.status == 0);
  auto const answer = http::decode<api::PlanAnswer>(run.out);
  REQUIRE(answer.has_value());
  CHECK(answer->algorithm == "ring");
  CHECK(answer->verified);
  CHECK(answer->lower_bound.bytes_per_rank == 2 * 3 * (64 << 20) / 4);
  CHECK(answer->rounds.size() == 6);
  CHECK(answer->rounds[0].size() == 8);
}

TEST_CASE("localities on paper are ranks in the given order") {
  auto const plan = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"plan", "--bytes", "1M", "--locality", "host=a", "--locality", "host=b"});
    return chorus::cli::chorus(more);
  };
  CHECK(plan({}).out.find("all_reduce of 1 MiB f32 over 2 ranks: ") == 0);
  CHECK(plan({"--ranks", "3"}).status == 2);
  CHECK(plan({"--locality", "hots=c"}).err.find("hots=c") != std::string::npos);
  CHECK(plan({"--algorithm", "rign"}).err.find("unknown algorithm 'rign'; did you mean 'ring'?") != std::string::npos);
}

TEST_CASE("the text of a program is the one of the library") {
  auto const run =
      chorus::cli::chorus({"plan", "--ranks", "5", "--bytes", "4", "--algorithm", "ring", "--text", "--rank", "2"});
  CHECK(run.status == 0);
  auto const program = plan::build(algorithms::ring, {.algorithm = "ring", .ranks = 5}, 2);
  CHECK(run.out == plan::to_text(program.value()));
}
