// Which message belongs to which receive: the receives that wait for a message, and the envelopes that no receive has
// asked for yet.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/plan/spec.hpp"
#include "worker/links/frame.hpp"

namespace chorus::engine {

// A receive from any source takes the message of the tag that has arrived first.
inline constexpr plan::Rank any_source = 0xffffffff;

// One group, one member. A receive takes the first message of its source and tag in the order in which they were sent,
// and of several receives that fit the one that was posted first. Envelopes may arrive in another order than they were
// sent: one that is ahead waits for those before it.
class MessageTable {
 public:
  struct Arrival {
    plan::Rank source = 0;
    std::uint64_t run = 0;  // that carries the message
    links::Envelope envelope;
  };

  explicit MessageTable(std::size_t ranks) : next_(ranks) {}

  // An envelope has arrived. False: its sequence has arrived before.
  [[nodiscard]] bool arrived(Arrival arrival);
  // The run of an envelope that was not matched has ended.
  void withdraw(std::uint64_t run);

  // Takes the message for a new receive, if it has arrived.
  [[nodiscard]] std::optional<Arrival> take(plan::Rank source, std::uint32_t tag);
  // A receive that waits. `id` is any number that no other receive has.
  void post(std::uint64_t id, plan::Rank source, std::uint32_t tag) { posted_.push_back({id, source, tag}); }
  void forget(std::uint64_t id);

  struct Match {
    std::uint64_t id = 0;
    Arrival arrival;
  };
  // Takes the next receive and message that belong together, after arrived().
  [[nodiscard]] std::optional<Match> match();

  // Runs of the envelopes that no receive has taken.
  [[nodiscard]] std::vector<std::uint64_t> unmatched() const;

 private:
  struct Posted {
    std::uint64_t id;
    plan::Rank source;
    std::uint32_t tag;
    [[nodiscard]] bool takes(Arrival const& arrival) const {
      return tag == arrival.envelope.tag && (source == any_source || source == arrival.source);
    }
  };
  void admit_those_ahead(plan::Rank source);

  std::vector<std::uint64_t> next_;  // by source: the sequence that is to arrive next
  std::vector<Arrival> unmatched_;   // in the order in which they may be received
  std::vector<Arrival> ahead_;       // of an envelope that is still to come
  std::vector<Posted> posted_;       // in the order in which they were posted
  std::size_t looked_at_ = 0;        // envelopes of unmatched_ that no posted receive fits
};

}  // namespace chorus::engine
