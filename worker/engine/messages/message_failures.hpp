// How messages fail: texts and results.
#pragma once

#include <algorithm>
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
