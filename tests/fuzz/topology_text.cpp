// Topologies and localities as text: what is accepted has a bounded number of workers, each with a locality that can be
// written and read back.
#include "collectives/core/locality.hpp"
#include "collectives/plan/spec.hpp"
#include "collectives/topology/shape_spec.hpp"
#include "tests/fuzz/input.hpp"

using namespace chorus;

namespace {

void check_shape(std::string_view text) {
  auto const shape = topology::parse_shape(text);
  if (shape.has_error()) {
    CHORUS_ASSERT(!shape.error().detail.empty(), "what is refused has a reason");
    return;
  }
  CHORUS_ASSERT(!shape->localities.empty() && shape->localities.size() <= plan::max_ranks, "as many as there may be");
  for (auto const& link : shape->links)
    if (link) CHORUS_ASSERT(!topology::check(*link, "link").has_error(), "a link is within its limits");
}

void check_locality(std::string_view text) {
  auto const locality = parse_locality(text);
  if (locality.has_error()) {
    CHORUS_ASSERT(!locality.error().detail.empty(), "what is refused has a reason");
    return;
  }
  auto const again = parse_locality(to_string(*locality));
  CHORUS_ASSERT(again.has_value() && *again == *locality, "written and read back as it was");
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::Input(data, size).text();
  check_shape(text);
  check_locality(text);
  return 0;
}
