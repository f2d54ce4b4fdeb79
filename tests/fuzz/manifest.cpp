// The manifest of a checkpoint. The digest at its end would keep every mutation out: it is put right first.
#include "worker/parameters/checkpoints/manifest.hpp"

#include "tests/fuzz/input.hpp"
#include "worker/parameters/checkpoints/digests.hpp"

using namespace chorus;
using namespace chorus::checkpoints;

namespace {

void check_text(std::string_view text) {
  auto const manifest = parse_manifest(text);
  if (manifest.has_error()) {
    CHORUS_ASSERT(!manifest.error().detail.empty(), "what is refused has a reason");
    return;
  }
  if (auto const whole = check(*manifest); whole.has_error())
    CHORUS_ASSERT(!whole.error().detail.empty(), "what is refused has a reason");
  auto const again = parse_manifest(to_text(*manifest));
  CHORUS_ASSERT(again.has_value() && *again == *manifest, "a manifest is written and read back");
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const body = fuzz::Input(data, size).text();
  check_text(body);
  check_text(std::string(body) + ",\"sha256\":\"" + sha256_of(body) + "\"}\n");
  return 0;
}
