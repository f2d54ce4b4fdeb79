// Matching: the sender and the receiver of every message of a plan. For the verifier and the cost model, which follow
// the programs of all ranks. The engine does not need it, as it runs one rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/plan/program.hpp"

namespace chorus::plan {

struct Endpoint {
  Rank rank = 0;
  std::uint32_t instruction = 0;
};

// Requires that messages are numbered from 0 per direction, and that both ends of every channel have the same number of
// messages, as verify::check proves. Keeps a reference to the programs, which must outlive it.
class Matching {
 public:
  explicit Matching(std::span<Program const> programs);

  [[nodiscard]] std::size_t messages() const { return senders_.size(); }
  [[nodiscard]] Endpoint sender(std::size_t message) const { return senders_[message]; }
  [[nodiscard]] Endpoint receiver(std::size_t message) const { return receivers_[message]; }

  // Returns the index of the message of a send or receive. The messages of one channel have successive indices.
  [[nodiscard]] std::size_t message(Rank rank, Instruction const& instruction) const;

 private:
  [[nodiscard]] std::size_t channel_index(Rank rank, Rank peer) const;

  std::span<Program const> programs_;
  std::vector<std::size_t> channel_begin_;  // per rank: its first channel in first_send_ and first_receive_
  std::vector<std::size_t> first_send_;     // per channel: index of message 0 to the peer
  std::vector<std::size_t> first_receive_;  // per channel: index of message 0 from the peer
  std::vector<Endpoint> senders_;
  std::vector<Endpoint> receivers_;
};

}  // namespace chorus::plan
