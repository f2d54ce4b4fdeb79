// The receiving end's part with memory of GPUs that the peer lends.
#include "worker/engine/engine.hpp"
#include "worker/engine/inlet.hpp"

namespace chorus::engine {

Status Inlet::place_arrived() {
  engine_.look_for_standstill();
  auto const& header = control_header();
  auto const place = links::decode_place(control_payload());
  if (place.has_error()) return bad(place.error().detail);
  auto* const channel = find(header.run);
  if (channel == nullptr && is_over(header.run)) return ok();
  if (channel == nullptr)
    return bad("memory of run " + std::to_string(header.run) + ", which nothing was borrowed for");
  if (auto const taken = channel->lies(header, *place); taken.has_error()) return bad(taken.error().detail);
  engine_.touch(header.run);
  return ok();
}

}  // namespace chorus::engine
