// Sends of a call, and where they are written: into the peers' destinations, in one piece or several.
#include "worker/engine/shm/shared_call.hpp"

#include <algorithm>

namespace chorus::engine {

using plan::Buffer;

void SharedCall::offer_landings() {
  for (auto const& step : steps_)
    if (step.may_land && step.bytes <= SharedLane::message_bytes_max) offer_landing(step);
}

void SharedCall::offer_landing(Step const& step) {
  auto const [c, number] = *step.operands[0].message;
  auto const& piece = step.destinations[0].pieces[0];
  auto& lane = *channels_[c].lane;
  if (step.bytes <= lane.inside_max() || number >= landings_per_lane || piece.buffer != Buffer::output) return;
  auto const after = step.land_after == 0 ? 0 : channels_[c].first_sent + step.land_after;
  auto const message = channels_[c].first_received + number;
  if (pieces_ != nullptr)
    lane.offer_landing(message, LandingKind::pieces, *pieces_->listed(piece.at), step.bytes, after);
  else
    lane.offer_landing(message, LandingKind::one, *shared_output_ + piece.at, step.bytes, after);
  has_offered_ = true;
}

void SharedCall::find_landings(Step const& step, Progress& progress) {
  for (std::size_t k = 0; k < step.sends.size(); ++k) {
    auto const [c, number] = step.sends[k];
    auto const& channel = channels_[c];
    auto const message = channel.first_sent + number;
    if (step.bytes <= channel.lane->inside_max() || channel.lane->messages_sent != message) continue;
    bool const reads_it_now = std::any_of(step.operands.begin(), step.operands.end(), [&](Operand const& operand) {
      return operand.message && operand.message->channel == c;
    });
    auto const read = channel.lane->messages_received + (reads_it_now ? 1 : 0);
    auto const place = channel.lane->landing(message, step.bytes, read);
    progress.landings[k] = {place.is_there(), place};
  }
}

SharedCall::Turn SharedCall::wrong_landing(MessageName const& name) {
  auto const peer = program_->channels[name.channel].peer;
  failure_ = {EngineErrc::protocol_error,
              "it wants message " + std::to_string(name.number + 1) + " where it has no memory, or no whole elements",
              {peer},
              {}};
  return Turn::failed;
}

SharedCall::Turn SharedCall::send(Step const& step, Progress& progress) {
  bool moved = false;
  auto const& range = step.destinations.empty() ? step.operands[0].local : step.destinations[0];
  for (; progress.sends_done < step.sends.size(); ++progress.sends_done) {
    auto const name = step.sends[progress.sends_done];
    auto& channel = channels_[name.channel];
    auto& lane = *channel.lane;
    auto const waits = [&] { return moved ? Turn::moved : Turn::waits; };
    if (lane.messages_sent != channel.first_sent + name.number) return waits();
    if (progress.landings[progress.sends_done].lands) {
      if (!lane.send_landed(step.bytes)) return waits();
      bytes_sent_ += step.bytes;
    } else {
      auto& cursor = progress.cursors.back();
      while (progress.sent != step.bytes) {
        auto const bytes = send_some(lane, range, cursor);
        if (bytes == 0) return waits();
        progress.sent += bytes;
        bytes_sent_ += bytes;
        moved = true;
      }
      cursor = {};
      progress.sent = 0;
    }
    channel.referred[name.number] = lane.referred();
    ++lane.messages_sent;
    moved = true;
  }
  return Turn::done;
}

std::uint64_t SharedCall::send_some(SharedLane& lane, Range const& range, Cursor& cursor) const {
  auto const& piece = range.pieces[cursor.piece];
  auto const offset = piece.at + cursor.at;
  auto const left = piece.bytes - cursor.at;
  auto here = left;
  auto const* const data = locate(piece.buffer, offset, here);
  std::span<std::byte const> const bytes(data, here);
  std::uint64_t sent = 0;
  if (is_in_pieces(piece.buffer)) {
    auto const list = pieces_->listed(offset);
    if (list && left > lane.inside_max() && left <= SharedLane::message_bytes_max)
      sent = lane.send_pieces(*list, left) ? left : 0;
    else
      sent = send_contiguous(lane, bytes, arena_.offset_of(bytes));
  } else {
    auto shared = shared_base(piece.buffer);
    if (shared) *shared += offset;
    sent = send_contiguous(lane, bytes, shared);
  }
  cursor.at += sent;
  if (cursor.at == piece.bytes) cursor = {cursor.piece + 1, 0};
  return sent;
}

std::uint64_t SharedCall::send_contiguous(SharedLane& lane, std::span<std::byte const> bytes,
                                          std::optional<std::uint64_t> shared) {
  if (bytes.size() <= lane.inside_max()) return lane.send_inside(bytes);
  return shared ? lane.send_reference(*shared, bytes.size()) : lane.send_through_slot(bytes);
}

}  // namespace chorus::engine
