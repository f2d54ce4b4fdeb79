// What connections need to know of a run whose messages they carry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "worker/engine/failure/failure.hpp"
#include "worker/engine/program/run_spec.hpp"
#include "worker/engine/transport/connection.hpp"
#include "worker/links/frames/lending.hpp"

namespace chorus::engine {

class ReceiveChannel;

// "rank 2 (w2)"
[[nodiscard]] std::string name_of(RunSpec const& spec, plan::Rank rank);
// Rank of this identity in the run; empty if it is no member.
[[nodiscard]] std::optional<plan::Rank> rank_of(RunSpec const& spec, std::string const& worker,
                                                std::uint64_t incarnation);

class RunOnLinks {
 public:
  [[nodiscard]] virtual RunSpec const& spec() const = 0;

  // Answer to an open from `sender`.
  struct Answer {
    ReceiveChannel* channel = nullptr;  // null: refused
    Failure refusal;
    bool fails_the_run = false;  // the peer belongs to the run, and runs something else
  };
  [[nodiscard]] virtual Answer judge(links::DecodedOpen const& decoded, std::uint32_t epoch,
                                     Identity const& sender) = 0;

  [[nodiscard]] virtual std::optional<Failure> device_failure() const = 0;
  // True while one of the two ranks writes into the other's memory. Both links between them must last for that: frames
  // on one link return what was lent on the other.
  [[nodiscard]] virtual bool writes_with(plan::Rank peer) const = 0;
  // Whether the peer is to write the memory that it lends into the channel's destination; empty while it is not known
  // whether it can.
  [[nodiscard]] virtual std::optional<bool> may_be_written(ReceiveChannel const& channel,
                                                           links::Lend const& lend) const = 0;

 protected:
  ~RunOnLinks() = default;
};

}  // namespace chorus::engine
