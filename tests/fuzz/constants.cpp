// The file of the model's constants: what is accepted are costs, finite and not negative, whatever the numbers were.
#include "http/api/cluster/constants.hpp"

#include <cmath>

#include "http/calibration/constants_file.hpp"
#include "http/json/json.hpp"
#include "tests/fuzz/input.hpp"

using namespace chorus;

namespace {

bool is_cost(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const given = http::decode<api::ModelConstants>(fuzz::Input(data, size).text());
  if (!given) {
    CHORUS_ASSERT(!given.error().detail.empty(), "what is refused has a reason");
    return 0;
  }
  auto const applied = calibration::apply(*given, model::Constants::defaults());
  if (applied.has_error()) {
    CHORUS_ASSERT(!applied.error().detail.empty(), "what is refused has a reason");
    return 0;
  }
  for (auto const& level : applied->level)
    CHORUS_ASSERT(is_cost(level.alpha_s) && is_cost(level.beta_s_per_byte), "a link costs something finite");
  CHORUS_ASSERT(is_cost(applied->gamma_s_per_byte) && is_cost(applied->cached_gamma_s_per_byte) &&
                    is_cost(applied->host_cores) && is_cost(applied->wake_s),
                "a host costs something finite");
  CHORUS_ASSERT(applied->segment_bytes > 0, "segments have bytes");
  auto const text = http::encode(*given);
  auto const again = http::decode<api::ModelConstants>(text);
  CHORUS_ASSERT(again && http::encode(*again) == text, "what was read is written and read back");
  return 0;
}
