// The sending end's part with memory of GPUs that it lends to the peer.
#include <algorithm>

#include "worker/engine/engine.hpp"
#include "worker/engine/outlet.hpp"
#include "worker/links/errc.hpp"

namespace chorus::engine {

using links::FrameHeader;
using links::Way;

namespace {

// The next run may have another of the peer's GPUs, which maps what this one could not.
constexpr std::chrono::seconds refused_for{30};

}  // namespace

std::optional<links::Lend> Outlet::lend(DeviceWork& device) {
  auto const& unit = device.unit();
  auto const now = engine_.surroundings_.now();
  std::erase_if(unwanted_, [now](Unwanted const& each) { return now >= each.until; });
  bool const is_unwanted =
      std::any_of(unwanted_.begin(), unwanted_.end(), [&unit](Unwanted const& each) { return each.unit == &unit; });
  if (!may_lend() || is_unwanted || !device.lies_in_arena()) return std::nullopt;
  auto const lent = device.lend(engine_.options().incarnation);
  if (lent.has_value()) return *lent;
  engine_.traffic_.set_why_not_ipc(peer().worker, Direction::to_peer, lent.error().detail);
  return std::nullopt;
}

Status Outlet::borrow_arrived() {
  auto const borrow = links::decode_borrow(control_payload());
  if (borrow.has_error()) return borrow.error();
  auto const& header = control_header();
  auto* const channel = find(header.run);
  if (channel == nullptr) return belated(header);
  auto const way = borrow->head.way;
  if (auto const agreed = channel->borrowed(way); agreed.has_error()) return agreed;
  if (way == Way::refused) {
    auto const* const unit = engine_.find_run(header.run)->spec().gpu;
    std::erase_if(unwanted_, [unit](Unwanted const& each) { return each.unit == unit; });
    unwanted_.push_back({unit, engine_.surroundings_.now() + refused_for});
  }
  if (way != Way::in_frames) {
    auto why_not = way == Way::refused ? borrow->why_not : std::string();
    engine_.traffic_.set_why_not_ipc(peer().worker, Direction::to_peer, std::move(why_not));
  }
  // Before this channel's frames: room that is known when these are read is written in the same pass.
  engine_.decide(header.run);
  if (channel->has_frame()) schedule(*channel);
  engine_.heard(header.run, channel->peer());
  engine_.touch(header.run);
  return ok();
}

Status Outlet::room_arrived() {
  engine_.look_for_standstill();
  auto const place = links::decode_place(control_payload());
  if (place.has_error()) return place.error();
  auto const& header = control_header();
  auto* const channel = find(header.run);
  if (channel == nullptr) return belated(header);
  if (auto const taken = channel->has_room(header, *place); taken.has_error()) return taken;
  engine_.touch(header.run);
  return ok();
}

Status Outlet::read_arrived(FrameHeader const& header) {
  auto* const channel = find(header.run);
  if (channel == nullptr) return belated(header);
  if (auto const read = channel->was_read(header); read.has_error()) return read;
  if (channel->has_frame()) schedule(*channel);
  engine_.touch(header.run);
  return ok();
}

Status Outlet::returned_arrived(FrameHeader const& header) {
  if (auto* const channel = find(header.run)) {
    channel->returned();
    engine_.touch(header.run);
    return ok();
  }
  // A device may have hung for so long that the run is not remembered.
  auto const is_of_run = [&header](auto const& loan) { return loan->run() == header.run; };
  for (auto const& loan : loans_)
    if (is_of_run(loan)) loan->returned();
  if (std::erase_if(loans_, is_of_run) != 0) engine_.surroundings_.poll_devices_soon();
  return ok();
}

Status Outlet::belated(FrameHeader const& header) const {
  if (engine_.find_ended(header.run) != nullptr) return ok();
  return Error(links::LinkErrc::bad_frame, std::string(name(header.type)) + " for run " + std::to_string(header.run) +
                                               ", which was never opened on this link");
}

}  // namespace chorus::engine
