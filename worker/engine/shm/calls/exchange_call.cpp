#include "worker/engine/shm/calls/exchange_call.hpp"

#include <utility>

namespace chorus::engine {

ExchangeCall::ExchangeCall(Exchange plan, CallBuffers const& buffers, CallChannels& channels,
                           StepArithmetic& arithmetic)
    : plan_(std::move(plan)),
      buffers_(buffers),
      channels_(channels),
      arithmetic_(arithmetic),
      sources_(plan_.operands.size()),
      destinations_(plan_.destinations.size()) {}

std::optional<CallTurn> ExchangeCall::turn() {
  if (sent_ != plan_.sent.size()) return send();
  for (std::size_t k = 0; k < plan_.operands.size(); ++k) {
    auto const& operand = plan_.operands[k];
    if (!operand.channel) {
      sources_[k] = at(operand.local);
      continue;
    }
    auto& lane = channels_.lane(*operand.channel);
    auto const arrived = lane.arrived(plan_.bytes);
    if (arrived.wrong) {
      failure_ = lane.why(plan_.bytes);
      return CallTurn::failed;
    }
    if (arrived.bytes == 0) {
      awaited_ = &lane;
      return CallTurn::waits;
    }
    if (arrived.bytes != plan_.bytes || arrived.data == nullptr) return std::nullopt;
    sources_[k] = arrived.data;
  }
  for (std::size_t d = 0; d < plan_.destinations.size(); ++d) destinations_[d] = at(plan_.destinations[d]);
  arithmetic_.combine(plan_, sources_.data(), destinations_.data());
  for (auto const& operand : plan_.operands)
    if (operand.channel) channels_.take(*operand.channel, plan_.bytes, true);
  return CallTurn::done;  // nothing that was sent refers to memory
}

std::optional<CallTurn> ExchangeCall::send() {
  for (; sent_ != plan_.sent.size(); ++sent_) {
    auto const& message = plan_.sent[sent_];
    if (channels_.lane(message.name.channel).send_inside({at(message.from), message.bytes}) == 0) return std::nullopt;
    channels_.sent(message.name);
    channels_.count_sent(message.bytes);
  }
  return CallTurn::moved;
}

}  // namespace chorus::engine
