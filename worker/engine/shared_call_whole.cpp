// Small calls: every message is in its record, so nothing of them is ever half done, and most of what SharedCall keeps
// of its steps is not needed. What turns out otherwise goes on as it does elsewhere.
#include "worker/engine/shared_call.hpp"

namespace chorus::engine {

SharedCall::Turn SharedCall::exchange() {
  awaited_ = nullptr;
  if (pending_.empty()) return all_consumed() ? Turn::done : Turn::waits;
  auto const last = static_cast<std::uint32_t>(steps_.size() - 1);
  bool const sends = pending_.size() > 1;
  if (sends) {
    for (std::uint32_t s = 0; s < last; ++s) {
      if (!send_whole(s)) {
        pending_ = pending_.subspan(s);
        return go_on_in_parts();
      }
      instructions_done_ += steps_[s].steps;
    }
    pending_ = pending_.last(1);
  }
  if (auto const found = look_for_operands(steps_[last]); found != Turn::moved)
    return found == Turn::waits && sends ? Turn::moved : found;
  if (!fold_whole(steps_[last])) return go_on_in_parts();
  instructions_done_ += steps_[last].steps;
  pending_ = {};
  return all_consumed() ? Turn::done : Turn::moved;
}

SharedCall::Turn SharedCall::go_on_in_parts() {
  exchanges_now_ = false;
  return turn();
}

bool SharedCall::send_whole(std::uint32_t s) {
  auto const& step = steps_[s];
  auto const& piece = step.operands[0].local.pieces[0];
  std::span<std::byte const> const bytes(base(piece.buffer, false) + piece.at, step.bytes);
  for (auto& done = progress_[s].sends_done; done < step.sends.size(); ++done) {
    auto& channel = channels_[step.sends[done].channel];
    if (channel.lane->send_inside(bytes) == 0) return false;
    channel.referred[step.sends[done].number] = channel.lane->referred();
    ++channel.lane->messages_sent;
    bytes_sent_ += step.bytes;
  }
  return true;
}

bool SharedCall::fold_whole(Step const& step) {
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    auto const& operand = step.operands[k];
    if (operand.message) {
      auto const& arrived = channels_[operand.message->channel].lane->at_hand();
      if (arrived.bytes != step.bytes || arrived.data == nullptr) return false;
      sources_[k] = arrived.data;
    } else {
      sources_[k] = base(operand.local.pieces[0].buffer, false) + operand.local.pieces[0].at;
    }
  }
  for (std::size_t d = 0; d < step.destinations.size(); ++d)
    destinations_[d] = base(step.destinations[d].pieces[0].buffer, false) + step.destinations[d].pieces[0].at;
  combine(step, step.bytes, step.destinations.size());
  for (auto const& operand : step.operands) {
    if (!operand.message) continue;
    auto& lane = *channels_[operand.message->channel].lane;
    lane.take(step.bytes);
    ++lane.messages_received;
    bytes_received_ += step.bytes;
  }
  return true;
}

}  // namespace chorus::engine
