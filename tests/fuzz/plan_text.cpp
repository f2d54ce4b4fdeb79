// The text form of a plan: what is read is well formed and is written and read back as it was.
#include "collectives/plan/text/text.hpp"

#include "tests/fuzz/input.hpp"

using namespace chorus;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const program = plan::parse_text(fuzz::Input(data, size).text());
  if (program.has_error()) {
    CHORUS_ASSERT(program.error().detail.starts_with("line "), "what is refused names its line");
    return 0;
  }
  auto const again = plan::parse_text(plan::to_text(*program));
  CHORUS_ASSERT(again.has_value() && *again == *program, "what was read is written and read back");
  return 0;
}
