// Which instruction of which rank meets which: the messages of all ranks' programs, for those who follow a whole plan
// (the verifier, the cost model). The engine needs no such thing: it knows one rank.
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

// Requires that messages are numbered from 0 per direction and that both ends of every channel count the same number,
// as verify::check proves. Keeps a reference to the programs, which must outlive it.
class Matching {
 public:
  explicit Matching(std::span<Program const> programs);

  [[nodiscard]] std::size_t messages() const { return senders_.size(); }
  [[nodiscard]] Endpoint sender(std::size_t message) const { return senders_[message]; }
  [[nodiscard]] Endpoint receiver(std::size_t message) const { return receivers_[message]; }

  // The message that a send or receive takes part in. The messages of one channel are neighbours, in order.
  [[nodiscard]] std::size_t message(Rank rank, Instruction const& instruction) const;

 private:
  [[nodiscard]] std::size_t channel_index(Rank rank, Rank peer) const;

  std::span<Program const> programs_;
  std::vector<std::size_t> channel_begin_;  // per rank, in the two below
  std::vector<std::size_t> first_send_;     // per channel: the message with number 0 to that peer
  std::vector<std::size_t> first_receive_;  // and from it
  std::vector<Endpoint> senders_;
  std::vector<Endpoint> receivers_;
};

}  // namespace chorus::plan
