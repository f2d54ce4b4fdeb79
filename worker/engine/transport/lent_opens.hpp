// The opens of a peer that lend memory of a GPU: how the messages of each are transferred, and the answers.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/engine/transport/connection.hpp"
#include "worker/links/frames/lending.hpp"

namespace chorus::engine {

class ReceiveChannel;
class RunOnLinks;

// Those of one receive connection. Data thread only.
//
// If both ranks use the same GPU, the two processes take turns on it, and each turn costs more than 100 us: so the peer
// also writes its reduced results into this rank's memory. That needs the peer to have borrowed this memory, which it
// may not have reported yet. Of two ranks only the greater one waits for the report, so that they never wait for each
// other.
class LentOpens {
 public:
  // Both outlive this object.
  LentOpens(ConnectionOwner& owner, Connection& connection) : owner_(owner), connection_(connection) {}
  LentOpens(LentOpens const&) = delete;
  LentOpens& operator=(LentOpens const&) = delete;

  // Answers the channel's open. False: it is kept back until it is known how its messages are transferred.
  [[nodiscard]] bool answer(RunOnLinks& run, ReceiveChannel& channel, links::Lend const& lend);
  // Answers an open of the run that was kept back, if that can be decided now. Returns its channel; null otherwise.
  [[nodiscard]] ReceiveChannel* decide(RunOnLinks& run);
  void forget(ReceiveChannel const& channel);
  void clear() { undecided_.clear(); }

 private:
  struct Undecided {
    ReceiveChannel* channel = nullptr;
    links::Lend lend;
  };

  ConnectionOwner& owner_;
  Connection& connection_;
  std::vector<Undecided> undecided_;
};

}  // namespace chorus::engine
