// The sending end's part of lending GPU memory: this rank's memory is lent to the peer.
#include <algorithm>

#include "worker/engine/gpu/device_work.hpp"
#include "worker/engine/transport/connection_owner.hpp"
#include "worker/engine/transport/send_connection.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::engine {

using links::FrameHeader;
using links::Way;

namespace {

// Limited, because the next run may use another GPU of the peer that can map this memory.
constexpr std::chrono::seconds refused_for{30};

}  // namespace

std::optional<links::Lend> SendConnection::lend(DeviceWork& device) {
  auto const& unit = device.unit();
  auto const now = owner_.surroundings().now();
  std::erase_if(unwanted_, [now](Unwanted const& each) { return now >= each.until; });
  bool const is_unwanted =
      std::any_of(unwanted_.begin(), unwanted_.end(), [&unit](Unwanted const& each) { return each.unit == &unit; });
  if (!may_lend() || is_unwanted || !device.lies_in_arena()) return std::nullopt;
  auto const lent = device.lend(owner_.options().incarnation);
  if (lent.has_value()) return *lent;
  owner_.traffic().set_why_not_ipc(peer().worker, Direction::to_peer, lent.error().detail);
  return std::nullopt;
}

Status SendConnection::borrow_arrived() {
  auto const borrow = links::decode_borrow(control_payload());
  if (borrow.has_error()) return borrow.error();
  auto const& header = control_header();
  auto* const channel = find(header.run);
  if (channel == nullptr) return belated(header);
  auto const way = borrow->head.way;
  if (auto const agreed = channel->borrowed(way); agreed.has_error()) return agreed;
  if (way == Way::refused) {
    auto const* const unit = owner_.find_run(header.run)->spec().gpu;
    std::erase_if(unwanted_, [unit](Unwanted const& each) { return each.unit == unit; });
    unwanted_.push_back({unit, owner_.surroundings().now() + refused_for});
  }
  if (way != Way::in_frames) {
    auto why_not = way == Way::refused ? borrow->why_not : std::string();
    owner_.traffic().set_why_not_ipc(peer().worker, Direction::to_peer, std::move(why_not));
  }
  // Before this channel's frames: their results are written in the same pass if the room is known when they are read.
  owner_.decide(header.run);
  if (channel->has_frame()) schedule(*channel);
  owner_.heard(header.run, channel->peer());
  owner_.touch(header.run);
  return ok();
}

Status SendConnection::room_arrived() {
  owner_.look_for_standstill();
  auto const place = links::decode_place(control_payload());
  if (place.has_error()) return place.error();
  auto const& header = control_header();
  auto* const channel = find(header.run);
  if (channel == nullptr) return belated(header);
  if (auto const taken = channel->has_room(header, *place); taken.has_error()) return taken;
  owner_.touch(header.run);
  return ok();
}

Status SendConnection::read_arrived(FrameHeader const& header) {
  auto* const channel = find(header.run);
  if (channel == nullptr) return belated(header);
  if (auto const read = channel->was_read(header); read.has_error()) return read;
  if (channel->has_frame()) schedule(*channel);
  owner_.touch(header.run);
  return ok();
}

Status SendConnection::returned_arrived(FrameHeader const& header) {
  if (auto* const channel = find(header.run)) {
    channel->returned();
    owner_.touch(header.run);
    return ok();
  }
  // A device may have hung for so long that the run is forgotten.
  auto const is_of_run = [&header](auto const& loan) { return loan->run() == header.run; };
  for (auto const& loan : loans_)
    if (is_of_run(loan)) loan->returned();
  if (std::erase_if(loans_, is_of_run) != 0) owner_.surroundings().poll_devices_soon();
  return ok();
}

Status SendConnection::belated(FrameHeader const& header) const {
  if (owner_.find_ended(header.run) != nullptr) return ok();
  return Error(links::LinkErrc::bad_frame, std::string(name(header.type)) + " for run " + std::to_string(header.run) +
                                               ", which was never opened on this link");
}

}  // namespace chorus::engine
