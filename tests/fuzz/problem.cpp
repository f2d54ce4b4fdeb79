// Problems as peers send them: read leniently whatever they hold, and stable once they were ours.
#include "http/json/problem.hpp"

#include "tests/fuzz/input.hpp"

using namespace chorus::http;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  chorus::fuzz::Input input(data, size);
  unsigned const status = 400 + input.byte();
  auto const problem = problem_from_json(input.text(), status);
  auto const text = to_json(problem);
  // Once, because text that is not UTF-8 is written as U+FFFD.
  auto const again = problem_from_json(text, kind(problem.code).status);
  CHORUS_ASSERT(to_json(again) == text && again.code == problem.code, "what we write is read as it was");
  auto const& known = kind(problem.code);
  CHORUS_ASSERT(parse_problem_code(known.name) == problem.code, "every code has its own name");
  return 0;
}
