#include "worker/engine/liveness/failure_detector.hpp"

#include <utility>

namespace chorus::engine {
namespace {

using links::Doing;
using links::Suspicion;
using std::chrono::duration_cast;
using std::chrono::microseconds;

}  // namespace

void FailureDetector::asked(plan::Rank rank, std::uint64_t moved, TimePoint now) {
  auto& known = known_[rank];
  if (std::exchange(known.moved, moved) != moved || !known.owes_since) known.owes_since = now;
}

void FailureDetector::told(plan::Rank rank, links::Tell tell, TimePoint now) {
  auto& known = known_[rank];
  known.owes_since.reset();
  bool const same = known.told && known.told->head.doing == tell.head.doing &&
                    known.told->head.suspicion == tell.head.suspicion && known.told->head.suspect == tell.head.suspect;
  if (!same) known.told_the_same_since = now;
  known.told = std::move(tell);
  known.told_at = now;
}

void FailureDetector::stood_still(TimePoint now) {
  for (auto& known : known_)
    if (known.owes_since) known.owes_since = now;
}

microseconds FailureDetector::owing(plan::Rank rank, TimePoint now) const {
  auto const& since = known_[rank].owes_since;
  return since ? duration_cast<microseconds>(now - *since) : microseconds(0);
}

std::optional<microseconds> FailureDetector::ended_for(plan::Rank rank) const {
  auto const& known = known_[rank];
  if (!known.told || known.told->head.doing != Doing::ended) return std::nullopt;
  return duration_cast<microseconds>(known.told_at - known.told_the_same_since);
}

std::optional<Suspect> FailureDetector::suspect(plan::Rank rank, plan::Rank self, std::string text,
                                                TimePoint now) const {
  auto const& known = known_[rank];
  if (auto const owes = owing(rank, now); owes >= answer_time)
    return Suspect{rank, Suspicion::silent, owes, std::move(text)};
  if (!known.told) return std::nullopt;
  auto const& head = known.told->head;
  auto const same_for = duration_cast<microseconds>(now - known.told_the_same_since);
  if (head.doing == Doing::not_called) return Suspect{rank, Suspicion::not_called, same_for, std::move(text)};
  if (head.doing == Doing::ended) return std::nullopt;
  if (head.suspicion == Suspicion::nobody) return Suspect{rank, Suspicion::slow, same_for, std::move(text)};
  if (head.suspect == self || head.suspect >= known_.size()) return std::nullopt;
  auto const since_told = duration_cast<microseconds>(now - known.told_at);
  return Suspect{head.suspect, head.suspicion, microseconds(head.since_us) + since_told, known.told->text};
}

}  // namespace chorus::engine
