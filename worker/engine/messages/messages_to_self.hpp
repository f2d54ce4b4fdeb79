// Messages of a member to itself that are too large to be kept: no run carries them, they wait where they lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "worker/engine/messages/message.hpp"

namespace chorus::engine {

// Those of one group that no receive has taken. One thread.
class MessagesToSelf {
 public:
  struct Message {
    std::uint64_t run = 0;  // by which the table knows it; there is no run
    std::span<std::byte const> content;
    MessageDone done;
    std::uint64_t watch = 0;  // for the deadline; 0: none yet
  };

  void add(Message message) { waiting_.push_back(std::move(message)); }
  // Null: taken. Valid until the next call.
  [[nodiscard]] Message* find(std::uint64_t run) {
    auto const found = std::ranges::find(waiting_, run, &Message::run);
    return found != waiting_.end() ? &*found : nullptr;
  }
  [[nodiscard]] std::optional<Message> remove(std::uint64_t run) {
    auto* const found = find(run);
    if (found == nullptr) return std::nullopt;
    auto message = std::move(*found);
    waiting_.erase(waiting_.begin() + (found - waiting_.data()));
    return message;
  }
  [[nodiscard]] std::vector<Message> remove_all() { return std::exchange(waiting_, {}); }

 private:
  std::vector<Message> waiting_;
};

}  // namespace chorus::engine
