#include <doctest/doctest.h>

#include "tests/house/dependencies.hpp"
#include "tests/house/style.hpp"

using namespace chorus::house;

namespace {

std::vector<Target> small_house() {
  return parse_targets(
      "module core collectives/core [] [a.cpp]\n"
      "module plan collectives/plan [core] [b.cpp]\n"
      "module http http [core] [c.cpp]\n"
      "tests plan collectives/plan [plan] [b_test.cpp]\n"
      "binary tool tools [plan] [main.cpp]\n");
}

Findings include(std::string file, std::string what) {
  return check_dependencies(small_house(), {{std::move(file), "#include \"" + what + "\"\n"}});
}

}  // namespace

TEST_CASE("a target may include itself and what its dependencies reach") {
  CHECK(include("collectives/plan/b.cpp", "collectives/core/rank.hpp").empty());
  CHECK(include("collectives/plan/b.cpp", "collectives/plan/b.hpp").empty());
  CHECK(include("collectives/plan/b_test.cpp", "collectives/core/rank.hpp").empty());
  CHECK(include("tools/main.cpp", "collectives/core/rank.hpp").empty());
  CHECK(include("tools/main.cpp", "tools/part.hpp").empty());
}

TEST_CASE("an include against the arrows is found, in sources, headers, tests and binaries") {
  CHECK(include("collectives/core/a.cpp", "collectives/plan/b.hpp").size() == 1);
  CHECK(include("collectives/core/a.hpp", "collectives/plan/b.hpp").size() == 1);
  CHECK(include("http/api/x.hpp", "collectives/plan/b.hpp").size() == 1);
  CHECK(include("collectives/plan/b_test.cpp", "http/c.hpp").size() == 1);
  CHECK(include("tools/main.cpp", "http/c.hpp").size() == 1);
}

TEST_CASE("a cycle between modules is found") {
  CHECK(check_dependencies(parse_targets("module a a [b] []\nmodule b b [a] []\n"), {}).size() == 2);
}

TEST_CASE("what the house bans is found where it is banned") {
  auto const found = [](std::string file, std::string line) {
    return check_style({{std::move(file), std::move(line)}}).size();
  };
  CHECK(found("http/a.cpp",
              "auto n = std::sto"
              "i(text);") == 1);
  CHECK(found("http/a.cpp",
              "co_spawn(e, f(), asio::detach"
              "ed);") == 1);
  CHECK(found("http/a.cpp",
              "auto f = [this]"
              "() -> asio::awaitable<void> {") == 1);
  CHECK(found("http/a.cpp",
              "auto f = []"
              "() -> asio::awaitable<void> {") == 0);
  CHECK(found("http/a.cpp", "static_assert(sizeof(x) == 1);") == 0);
  CHECK(found("http/a_test.cpp",
              "std::this_thread::sleep"
              "_for(1s);") == 1);
  CHECK(found("http/a.cpp", std::string(140, 'x')) == 1);
}
