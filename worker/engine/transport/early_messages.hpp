// Small messages that arrive on a connection: those of an epoch whose messages this rank has not begun wait here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "worker/engine/failure/retired.hpp"
#include "worker/engine/transport/connection.hpp"

namespace chorus::engine {

// Data thread only.
class EarlyMessages {
 public:
  // Both outlive this object.
  EarlyMessages(ConnectionOwner& owner, Connection& connection) : owner_(owner), connection_(connection) {}
  EarlyMessages(EarlyMessages const&) = delete;
  EarlyMessages& operator=(EarlyMessages const&) = delete;

  // Tells the owner of a message, or keeps it. Refuses it if too many wait, or if its epoch is retired.
  void arrived(links::FrameHeader const& header, std::span<std::byte const> payload);
  // Tells the owner of those of the epoch.
  void report(std::uint64_t token, std::uint32_t epoch);
  // Refuses those of the epoch.
  void retire(Retired const& epoch);
  // Tells the peer that its small messages of the epoch have failed.
  void refuse(std::uint64_t token, std::uint32_t epoch, Failure const& why);

 private:
  struct Message {
    links::FrameHeader header;
    std::vector<std::byte> payload;
  };
  [[nodiscard]] std::vector<Message> remove(std::uint64_t token, std::uint32_t epoch);
  [[nodiscard]] bool is_taken(links::FrameHeader const& header, std::span<std::byte const> payload);

  ConnectionOwner& owner_;
  Connection& connection_;
  std::vector<Message> waiting_;
};

}  // namespace chorus::engine
