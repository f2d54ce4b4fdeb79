// Which message belongs to which receive: the receives that wait for a message, and the envelopes that no receive has
// asked for yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/plan/spec.hpp"
#include "worker/links/frames/frame.hpp"

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
    std::uint64_t run = 0;  // that carries the message; 0: the content came with the envelope
    links::Envelope envelope;
    std::vector<std::byte> content = {};
  };

  explicit MessageTable(std::size_t ranks) : next_(ranks), kept_(ranks) {}

  // A message is about to arrive: takes the receive that gets it, if it is the next of its source and a receive waits
  // for it. Then match() follows, otherwise arrived().
  [[nodiscard]] std::optional<std::uint64_t> meet(plan::Rank source, links::Envelope const& envelope);
  // The sequence of the source's next message, if neither receives nor messages wait here. Then pass_next() takes it
  // for a receive that is not posted.
  [[nodiscard]] std::optional<std::uint64_t> next_of(plan::Rank source) const {
    if (!posted_.empty() || !unmatched_.empty() || !ahead_.empty()) return std::nullopt;
    return next_[source];
  }
  void pass_next(plan::Rank source) { ++next_[source]; }
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
  // Takes the next receive and message that belong together, after meet() and arrived().
  [[nodiscard]] std::optional<Match> match();

  // Takes all that no receive has taken.
  [[nodiscard]] std::vector<Arrival> take_all();

  // Messages of a source whose content waits here for a receive.
  struct Kept {
    std::size_t messages = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Kept const& kept(plan::Rank source) const { return kept_[source]; }

 private:
  struct Posted {
    std::uint64_t id;
    plan::Rank source;
    std::uint32_t tag;
    [[nodiscard]] bool takes(plan::Rank from, std::uint32_t with_tag) const {
      return tag == with_tag && (source == any_source || source == from);
    }
  };
  using Arrivals = std::deque<Arrival>;
  void admit_those_ahead(plan::Rank source);
  [[nodiscard]] Arrival take(Arrivals& from, Arrivals::iterator which);
  [[nodiscard]] auto find_posted(plan::Rank source, std::uint32_t tag);

  std::vector<std::uint64_t> next_;  // by source: the sequence that is to arrive next
  std::vector<Kept> kept_;           // by source
  Arrivals unmatched_;               // in the order in which they may be received
  Arrivals ahead_;                   // of an envelope that is still to come
  std::deque<Posted> posted_;        // in the order in which they were posted
  std::size_t looked_at_ = 0;        // envelopes of unmatched_ that no posted receive fits
};

}  // namespace chorus::engine
