// What peers say of themselves when a link begins: lines "name:value", as header fields.
#include "tests/fuzz/input.hpp"
#include "worker/links/handshake.hpp"

using namespace chorus;
using namespace chorus::links;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  fuzz::Input input(data, size);
  http::Fields fields;
  while (!input.empty()) {
    auto const line = input.line();
    auto const colon = std::min(line.find(':'), line.size());
    fields.add(std::string(line.substr(0, colon)), std::string(line.substr(std::min(colon + 1, line.size()))));
  }
  auto const introduction = read_introduction(fields);
  if (introduction.has_error()) {
    CHORUS_ASSERT(!introduction.error().detail.empty(), "what is refused has a reason");
  } else {
    auto again = to_fields(*introduction);
    again.set("Connection", "Upgrade");
    again.set("Upgrade", std::string(link_protocol));
    auto const read = read_introduction(again);
    CHORUS_ASSERT(read.has_value() && *read == *introduction, "an introduction is written and read back");
  }
  auto const answer = read_answer(fields);
  if (answer.has_error()) return 0;
  CHORUS_ASSERT(answer->accepted == answer->why_not.empty() || !answer->accepted, "what was accepted has no reason");
  for (char const c : answer->why_not) CHORUS_ASSERT(c >= ' ' && c <= '~', "what is shown to people is printable");
  return 0;
}
