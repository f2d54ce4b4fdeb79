#include "worker/engine/shm/calls/step_sends.hpp"

#include <algorithm>

namespace chorus::engine {
namespace {

// `shared`: arena offset of the bytes, if they are in the arena.
std::uint64_t send_contiguous(SharedLane& lane, std::span<std::byte const> bytes, std::optional<std::uint64_t> shared) {
  if (bytes.size() <= lane.inside_max()) return lane.send_inside(bytes);
  return shared ? lane.send_reference(*shared, bytes.size()) : lane.send_through_slot(bytes);
}

}  // namespace

StepSends::StepSends(std::vector<Step> const& steps, CallBuffers const& buffers, CallChannels& channels)
    : steps_(steps), buffers_(buffers), channels_(channels), sendings_(steps.size()) {
  for (std::size_t s = 0; s < steps.size(); ++s) sendings_[s].landings.resize(steps[s].sends.size());
}

void StepSends::rewind() {
  for (auto& sending : sendings_) {
    sending.done = 0;
    sending.sent = 0;
    sending.cursor = {};
  }
}

bool StepSends::offer_landings() {
  bool has_offered = false;
  for (auto const& step : steps_)
    if (step.may_land && step.bytes <= SharedLane::message_bytes_max && offer_landing(step)) has_offered = true;
  return has_offered;
}

bool StepSends::offer_landing(Step const& step) {
  auto const name = *step.operands[0].message;
  auto const& piece = step.destinations[0].pieces[0];
  auto& lane = channels_.lane(name.channel);
  if (step.bytes <= lane.inside_max() || name.number >= landings_per_lane || piece.buffer != plan::Buffer::output)
    return false;
  auto const after = step.land_after == 0 ? 0 : channels_.sent_number({name.channel, step.land_after});
  auto const message = channels_.received_number(name);
  if (auto const* const pieces = buffers_.pieces(); pieces != nullptr)
    lane.offer_landing(message, LandingKind::pieces, *pieces->listed(piece.at), step.bytes, after);
  else
    lane.offer_landing(message, LandingKind::one, *buffers_.shared(piece.buffer, piece.at), step.bytes, after);
  return true;
}

void StepSends::find_landings(std::uint32_t s) {
  auto const& step = steps_[s];
  auto& landings = sendings_[s].landings;
  std::ranges::fill(landings, Landing{});
  for (std::size_t k = 0; k < step.sends.size(); ++k) {
    auto const& name = step.sends[k];
    auto const& lane = channels_.lane(name.channel);
    if (step.bytes <= lane.inside_max() || !channels_.is_next_to_send(name)) continue;
    bool const reads_it_now = std::ranges::any_of(step.operands, [&](Operand const& operand) {
      return operand.message && operand.message->channel == name.channel;
    });
    auto const read = lane.messages_received + (reads_it_now ? 1 : 0);
    auto const place = lane.landing(channels_.sent_number(name), step.bytes, read);
    landings[k] = {place.is_there(), place};
  }
}

CallTurn StepSends::send(std::uint32_t s) {
  auto const& step = steps_[s];
  auto& sending = sendings_[s];
  bool moved = false;
  auto const& range = step.destinations.empty() ? step.operands[0].local : step.destinations[0];
  auto const waits = [&] { return moved ? CallTurn::moved : CallTurn::waits; };
  for (; sending.done < step.sends.size(); ++sending.done) {
    auto const& name = step.sends[sending.done];
    auto& lane = channels_.lane(name.channel);
    if (!channels_.is_next_to_send(name)) return waits();
    if (sending.landings[sending.done].lands) {
      if (!lane.send_landed(step.bytes)) return waits();
      channels_.count_sent(step.bytes);
    } else {
      while (sending.sent != step.bytes) {
        auto const bytes = send_some(lane, range, sending.cursor);
        if (bytes == 0) return waits();
        sending.sent += bytes;
        channels_.count_sent(bytes);
        moved = true;
      }
      sending.cursor = {};
      sending.sent = 0;
    }
    channels_.sent(name);
    moved = true;
  }
  return CallTurn::done;
}

std::uint64_t StepSends::send_some(SharedLane& lane, Range const& range, Cursor& cursor) const {
  auto const& piece = range.pieces[cursor.piece];
  auto const offset = piece.at + cursor.at;
  auto const left = piece.bytes - cursor.at;
  auto here = left;
  auto const* const data = buffers_.locate(piece.buffer, offset, here);
  std::span<std::byte const> const bytes(data, here);
  std::uint64_t sent = 0;
  if (buffers_.is_in_pieces(piece.buffer)) {
    auto const list = buffers_.pieces()->listed(offset);
    if (list && left > lane.inside_max() && left <= SharedLane::message_bytes_max)
      sent = lane.send_pieces(*list, left) ? left : 0;
    else
      sent = send_contiguous(lane, bytes, buffers_.shared(bytes));
  } else {
    sent = send_contiguous(lane, bytes, buffers_.shared(piece.buffer, offset));
  }
  if (sent > 0) cursor.advance(range, sent);
  return sent;
}

}  // namespace chorus::engine
