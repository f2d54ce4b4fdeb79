#include "worker/engine/program/scoreboard.hpp"

#include <doctest/doctest.h>

using namespace chorus;
using namespace chorus::engine;

namespace {

// Makes a program with dependencies only: depends_on[i] lists those of instruction i.
plan::Program program_of(std::vector<std::vector<plan::Dependency>> const& depends_on) {
  plan::Program program;
  program.dependency_begin.push_back(0);
  for (auto const& list : depends_on) {
    program.instructions.emplace_back();
    program.dependencies.insert(program.dependencies.end(), list.begin(), list.end());
    program.dependency_begin.push_back(static_cast<std::uint32_t>(program.dependencies.size()));
  }
  return program;
}

std::vector<std::uint32_t> woken(Scoreboard& board) {
  std::vector<std::uint32_t> all;
  while (auto const i = board.next()) all.push_back(*i);
  return all;
}

using List = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("a segmentwise dependent follows the prefix, any other dependent waits for the whole instruction") {
  auto const program = program_of({{}, {{0, true}}, {{0, false}}});
  Scoreboard board(program, {100, 100, 40});
  CHECK(woken(board) == List{0, 1});
  CHECK(board.ready(0) == 100);
  CHECK(board.ready(1) == 0);

  board.advance(0, 30);
  CHECK(woken(board) == List{1});
  CHECK(board.ready(1) == 30);
  CHECK(board.ready(2) == 0);

  board.advance(0, 70);
  CHECK(woken(board) == List{1, 2});
  CHECK(board.ready(2) == 40);
  CHECK_FALSE(board.finished());
  board.advance(1, 100);
  board.advance(2, 40);
  CHECK(board.finished());
}

TEST_CASE("an instruction with several dependencies goes as far as the slowest of them") {
  auto const program = program_of({{}, {}, {{0, true}, {1, true}}});
  Scoreboard board(program, {10, 10, 10});
  board.advance(0, 10);
  board.advance(1, 4);
  CHECK(board.ready(2) == 4);
}

TEST_CASE("a flow limit bounds how far instruction `ahead` is in front of instruction `behind`") {
  auto const program = program_of({{}, {{0, true}}, {{1, true}}});
  Scoreboard board(program, {100, 100, 100}, {{.ahead = 0, .behind = 2, .bytes = 30}});
  CHECK(woken(board) == List{0, 1, 2});
  CHECK(board.ready(0) == 30);
  board.advance(0, 30);
  board.advance(1, 30);
  CHECK(board.ready(0) == 30);
  CHECK(woken(board) == List{1, 2});
  board.advance(2, 10);
  CHECK(woken(board) == List{0});
  CHECK(board.ready(0) == 40);
}

TEST_CASE("an instruction without bytes still orders its dependents behind its dependencies") {
  auto const program = program_of({{}, {{0, false}}, {{1, false}}});
  Scoreboard board(program, {8, 0, 8});
  CHECK(woken(board) == List{0});
  CHECK(board.ready(2) == 0);
  board.advance(0, 8);
  CHECK(woken(board) == List{2});
  CHECK(board.completed() == 2);
}

TEST_CASE("a program without bytes finishes as soon as its woken instructions are taken") {
  auto const program = program_of({{}, {{0, true}}, {{1, false}}});
  Scoreboard board(program, {0, 0, 0});
  CHECK(woken(board).empty());
  CHECK(board.finished());
}
