// Small calls: every message is inside its record, so no step is ever half done, and most of the state that SharedCall
// keeps per step is not needed. If a message does not arrive whole, the call goes on in the general way.
#include "worker/engine/shm/shared_call.hpp"

namespace chorus::engine {

SharedCall::Turn SharedCall::exchange() {
  auto const& plan = *exchange_;
  if (exchanged_ != plan.sent.size()) return exchange_sends();
  awaited_ = nullptr;
  for (std::size_t k = 0; k < plan.operands.size(); ++k) {
    auto const& operand = plan.operands[k];
    if (!operand.channel) {
      sources_[k] = at(operand.local);
      continue;
    }
    auto& lane = *channels_[*operand.channel].lane;
    auto const arrived = lane.arrived(plan.bytes);
    if (arrived.wrong) return wrong(lane, plan.bytes);
    if (arrived.bytes == 0) {
      awaited_ = &lane;
      order_.front() = static_cast<std::uint32_t>(steps_.size() - 1);
      pending_ = std::span(order_).first(1);
      return Turn::waits;
    }
    if (arrived.bytes != plan.bytes || arrived.data == nullptr) return go_on_in_parts();
    sources_[k] = arrived.data;
  }
  for (std::size_t d = 0; d < plan.destinations.size(); ++d) destinations_[d] = at(plan.destinations[d]);
  arithmetic_.combine(plan, sources_.data(), destinations_.data());
  for (auto const& operand : plan.operands)
    if (operand.channel) take_whole(*operand.channel, plan.bytes);
  instructions_done_ = plan.instructions;
  pending_ = {};
  return Turn::done;  // nothing that was sent refers to memory
}

SharedCall::Turn SharedCall::exchange_sends() {
  for (auto const& sent = exchange_->sent; exchanged_ != sent.size(); ++exchanged_) {
    auto const& message = sent[exchanged_];
    auto& lane = *channels_[message.name.channel].lane;
    if (lane.send_inside({at(message.from), message.bytes}) == 0) return go_on_in_parts();
    ++lane.messages_sent;
    bytes_sent_ += message.bytes;
  }
  instructions_done_ = exchange_->instructions_that_send;
  return Turn::moved;
}

SharedCall::Turn SharedCall::go_on_in_parts() {
  exchanges_now_ = false;
  rewind_steps();
  instructions_done_ = 0;
  for (auto const& message : std::span(exchange_->sent).first(exchanged_)) {
    auto& channel = channels_[message.name.channel];
    channel.referred[message.name.number] = channel.lane->referred();
    ++progress_[message.step].sends_done;
  }
  return turn();
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
  for (auto const& operand : step.operands)
    if (operand.message) take_whole(operand.message->channel, step.bytes);
  return true;
}

void SharedCall::take_whole(std::uint32_t channel, std::uint64_t bytes) {
  auto& lane = *channels_[channel].lane;
  lane.take(bytes);
  ++lane.messages_received;
  bytes_received_ += bytes;
}

}  // namespace chorus::engine
