// Small messages: one frame each, without a run. Their content arrives with their envelope.
#pragma once

#include <cstdint>
#include <optional>

#include "worker/engine/messages/message_group.hpp"

namespace chorus::engine {

// The frame of the next message to the peer of the request. Empty: it needs a run, as all messages of more than `limit`
// bytes do. Data thread only.
[[nodiscard]] std::optional<links::MessageFrame> small_message(MessageGroup const& group, MessageRequest const& request,
                                                               std::uint64_t limit);

// The small message that a receive takes, without its length and content, if the next one of its source is sure to be
// that: nothing else waits. When it has come, table.pass_next() follows. Empty: the receive begins in the ordinary way.
// Data thread only.
[[nodiscard]] std::optional<links::MessageFrame> awaited_next(MessageGroup const& group, MessageRequest const& request);

}  // namespace chorus::engine
