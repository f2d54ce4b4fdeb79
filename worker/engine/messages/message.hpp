// A message between two members of a group, as callers ask for it and as they are told of its end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "collectives/core/result.hpp"
#include "worker/engine/messages/message_table.hpp"

namespace chorus::engine {

inline constexpr std::uint32_t tag_max = 0x7fffffff;

// cancel: ends a receive that no message has met, which takes none afterwards; fails if there is no such receive.
enum class MessageWay : std::uint8_t { send, receive, cancel };

// The memory stays valid until the message has ended.
struct MessageRequest {
  MessageWay way = MessageWay::send;
  plan::Rank peer = 0;  // of a receive also any_source
  std::uint32_t tag = 0;
  std::span<std::byte const> sent;
  std::span<std::byte> received;  // at least as large as the message
  std::chrono::steady_clock::time_point deadline;
  std::uint64_t number = 0;  // of a receive and its cancel: MessageGroup::draw_receive()
};

struct MessageResult {
  Status status;                     // EngineErrc
  std::vector<plan::Rank> culprits;  // empty on success or when no rank is to blame
  bool ends_the_group = false;       // no message of this epoch succeeds any more; false after a receive that no
                                     // message has met until its deadline, or that was cancelled
  bool was_cancelled = false;        // a receive that has taken no message; then `status` has an error too
  plan::Rank source = 0;             // of a receive
  std::uint64_t bytes = 0;           // of the message
};

// Called once, on the data thread or one that does its work; not for long.
using MessageDone = std::function<void(MessageResult)>;

}  // namespace chorus::engine
