// How messages fail: texts and results.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "worker/engine/messages/message_group.hpp"

namespace chorus::engine {

[[nodiscard]] inline MessageResult to_result(Failure const& failure, bool ends_the_group) {
  MessageResult result;
  result.status = Error(failure.code, failure.detail());
  result.culprits = failure.culprits;
  result.ends_the_group = ends_the_group;
  return result;
}

[[nodiscard]] inline Failure to_failure(RunResult const& ended) {
  auto const& why = ended.status.error();
  return {code_of(why), why.detail, ended.culprits, {}};
}

[[nodiscard]] inline std::string name_of(MessageGroup const& group, plan::Rank rank) {
  return "rank " + std::to_string(rank) + " (" + group.membership().members[rank].worker + ")";
}

// A message does not come from the worker that is its sender, or not to this member; empty: it does.
[[nodiscard]] inline std::optional<Failure> misidentified(MessageGroup const& group, Identity const& from,
                                                          plan::Rank sender, plan::Rank receiver) {
  auto const& membership = group.membership();
  if (sender < membership.members.size() && sender != membership.rank && receiver == membership.rank &&
      membership.members[sender].worker == from.worker && membership.members[sender].incarnation == from.incarnation)
    return std::nullopt;
  return Failure{EngineErrc::forbidden,
                 from.worker + " is not rank " + std::to_string(sender) + " of " + membership.name,
                 {sender},
                 {}};
}

// The envelope's sequence has arrived before.
[[nodiscard]] inline Failure sent_before(MessageGroup const& group, plan::Rank source,
                                         links::Envelope const& envelope) {
  return {EngineErrc::protocol_error,
          name_of(group, source) + " has sent message " + std::to_string(envelope.sequence) + " before",
          {source},
          {}};
}

// A message of `bytes` bytes does not fit the receive.
[[nodiscard]] inline Failure too_large(MessageGroup const& group, plan::Rank source, std::uint64_t bytes,
                                       MessageRequest const& receive) {
  auto const self = group.membership().rank;
  auto culprits = std::vector{std::min(self, source)};
  if (self != source) culprits.push_back(std::max(self, source));
  return {EngineErrc::plan_mismatch,
          name_of(group, source) + " sends " + std::to_string(bytes) + " bytes with tag " +
              std::to_string(receive.tag) + ", " + name_of(group, self) + " receives at most " +
              std::to_string(receive.received.size()),
          std::move(culprits),
          {}};
}

}  // namespace chorus::engine
