#include <doctest/doctest.h>

#include "tests/house/dependencies.hpp"
#include "tests/house/folders.hpp"
#include "tests/house/rooms.hpp"
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

TEST_CASE("headers of what tests share are held against its own dependencies") {
  auto const targets = parse_targets(
      "module engine engine [] [a.cpp]\n"
      "module groups engine/groups [engine] [b.cpp]\n"
      "support engine_testing engine/testing [groups] [fleet.cpp]\n"
      "tests engine engine [engine_testing] [a_test.cpp]\n");
  auto const found = [&](std::string file, std::string what) {
    return check_dependencies(targets, {{std::move(file), "#include \"" + what + "\"\n"}}).size();
  };
  CHECK(found("engine/testing/fleet.hpp", "engine/groups/b.hpp") == 0);
  CHECK(found("engine/a_test.cpp", "engine/testing/fleet.hpp") == 0);
  CHECK(found("engine/a.hpp", "engine/groups/b.hpp") == 1);
  CHECK(found("engine/a.cpp", "engine/testing/fleet.hpp") == 1);
}

namespace {

// What is found in one file of a module with two rooms, the lower one first.
Findings in_rooms(std::string file, std::string what, std::string_view exceptions = "") {
  auto const targets = parse_targets("module engine engine [] [low/a.cpp,high/b.cpp,c.cpp] [low,high]\n");
  return check_rooms(targets, {{std::move(file), "#include \"" + what + "\"\n"}}, "list.txt", exceptions);
}

}  // namespace

TEST_CASE("a room includes itself and those below it; what stands beside the rooms includes all of them") {
  CHECK(in_rooms("engine/low/a.cpp", "engine/low/a.hpp").empty());
  CHECK(in_rooms("engine/high/b.cpp", "engine/low/a.hpp").empty());
  CHECK(in_rooms("engine/c.cpp", "engine/high/b.hpp").empty());
  CHECK(in_rooms("engine/testing/fleet.cpp", "engine/c.hpp").empty());
  CHECK(in_rooms("engine/low/a.cpp", "http/other.hpp").empty());
  CHECK(in_rooms("engine/low/a_test.cpp", "engine/c.hpp").empty());
}

TEST_CASE("an include of a room above is found") {
  CHECK(in_rooms("engine/low/a.hpp", "engine/high/b.hpp").size() == 1);
  CHECK(in_rooms("engine/high/b.cpp", "engine/c.hpp").size() == 1);
}

TEST_CASE("an order that names the folder itself says which rooms are above its own files") {
  auto const targets = parse_targets("module plan plan [] [a.cpp] [low,.,high]\n");
  auto const found = [&](std::string file, std::string what) {
    return check_rooms(targets, {{std::move(file), "#include \"" + what + "\"\n"}}, "list.txt", "").size();
  };
  CHECK(found("plan/a.cpp", "plan/low/b.hpp") == 0);
  CHECK(found("plan/high/c.cpp", "plan/a.hpp") == 0);
  CHECK(found("plan/testing/d.cpp", "plan/high/c.hpp") == 0);
  CHECK(found("plan/a.cpp", "plan/high/c.hpp") == 1);
  CHECK(found("plan/low/b.cpp", "plan/a.hpp") == 1);
}

TEST_CASE("a folder that is no room of its module is found") {
  CHECK(in_rooms("engine/new/a.cpp", "engine/low/a.hpp").size() == 1);
}

TEST_CASE("an upward include that is listed is let be, and a line of the list that is not needed any more is found") {
  CHECK(in_rooms("engine/low/a.cpp", "engine/c.hpp", "# why\nengine/low/a.cpp engine/c.hpp\n").empty());
  CHECK(in_rooms("engine/low/a.cpp", "engine/low/a.hpp", "engine/low/a.cpp engine/c.hpp\n").size() == 1);
}

namespace {

// A folder with so many sources, their two tests, and the READMEs.
std::size_t found_in_folder(std::string const& folder, std::size_t sources, std::vector<Source> const& readmes) {
  std::vector<Source> files = {{folder + "/a_test.cpp", ""}, {folder + "/b_for_tests.hpp", ""}};
  for (std::size_t i = 0; i < sources; ++i) files.push_back({folder + "/f" + std::to_string(i) + ".cpp", ""});
  return check_folders(files, readmes).size();
}

}  // namespace

TEST_CASE("a folder with several sources has a short README") {
  CHECK(found_in_folder("http/wire", 1, {}) == 0);
  CHECK(found_in_folder("http/wire", 2, {}) == 1);
  CHECK(found_in_folder("http/wire", 2, {{"http/README.md", "# http\n"}}) == 1);
  CHECK(found_in_folder("http/wire", 2, {{"http/wire/README.md", std::string(15, '\n')}}) == 0);
  CHECK(found_in_folder("http/wire", 2, {{"http/wire/README.md", std::string(16, '\n')}}) == 1);
}

TEST_CASE("a folder for tests needs no README if the one above mentions it") {
  CHECK(found_in_folder("http/testing", 2, {{"http/README.md", "# http\n"}}) == 1);
  CHECK(found_in_folder("http/testing", 2, {{"http/README.md", "`testing/` has a live server.\n"}}) == 0);
}

TEST_CASE("a folder with too many sources is found") {
  Source const readme{"http/wire/README.md", "# http/wire\n"};
  CHECK(found_in_folder("http/wire", 24, {readme}) == 0);
  CHECK(found_in_folder("http/wire", 25, {readme}) == 1);
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
