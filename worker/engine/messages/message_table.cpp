#include "worker/engine/messages/message_table.hpp"

#include <algorithm>

namespace chorus::engine {

bool MessageTable::arrived(Arrival arrival) {
  auto const source = arrival.source;
  auto const sequence = arrival.envelope.sequence;
  bool const is_known = std::any_of(ahead_.begin(), ahead_.end(), [&](Arrival const& other) {
    return other.source == source && other.envelope.sequence == sequence;
  });
  if (sequence < next_[source] || is_known) return false;
  ahead_.push_back(arrival);
  admit_those_ahead(source);
  return true;
}

void MessageTable::admit_those_ahead(plan::Rank source) {
  for (;;) {
    auto const found = std::find_if(ahead_.begin(), ahead_.end(), [&](Arrival const& arrival) {
      return arrival.source == source && arrival.envelope.sequence == next_[source];
    });
    if (found == ahead_.end()) return;
    ++next_[source];
    unmatched_.push_back(*found);
    ahead_.erase(found);
  }
}

void MessageTable::withdraw(std::uint64_t run) {
  auto const is_it = [run](Arrival const& arrival) { return arrival.run == run; };
  std::erase_if(ahead_, is_it);
  auto const found = std::find_if(unmatched_.begin(), unmatched_.end(), is_it);
  if (found == unmatched_.end()) return;
  if (static_cast<std::size_t>(found - unmatched_.begin()) < looked_at_) --looked_at_;
  unmatched_.erase(found);
}

std::optional<MessageTable::Arrival> MessageTable::take(plan::Rank source, std::uint32_t tag) {
  Posted const wanted{0, source, tag};
  auto const found =
      std::find_if(unmatched_.begin(), unmatched_.end(), [&](Arrival const& arrival) { return wanted.takes(arrival); });
  if (found == unmatched_.end()) return std::nullopt;
  auto const arrival = *found;
  withdraw(arrival.run);
  return arrival;
}

void MessageTable::forget(std::uint64_t id) {
  std::erase_if(posted_, [id](Posted const& posted) { return posted.id == id; });
}

std::optional<MessageTable::Match> MessageTable::match() {
  for (; looked_at_ < unmatched_.size(); ++looked_at_) {
    auto const arrival = unmatched_[looked_at_];
    auto const found =
        std::find_if(posted_.begin(), posted_.end(), [&](Posted const& posted) { return posted.takes(arrival); });
    if (found == posted_.end()) continue;
    Match const match{found->id, arrival};
    posted_.erase(found);
    unmatched_.erase(unmatched_.begin() + static_cast<std::ptrdiff_t>(looked_at_));
    return match;
  }
  return std::nullopt;
}

std::vector<std::uint64_t> MessageTable::unmatched() const {
  std::vector<std::uint64_t> runs;
  for (auto const* list : {&unmatched_, &ahead_})
    for (auto const& arrival : *list) runs.push_back(arrival.run);
  return runs;
}

}  // namespace chorus::engine
