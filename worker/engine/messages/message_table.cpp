#include "worker/engine/messages/message_table.hpp"

#include <algorithm>

namespace chorus::engine {

auto MessageTable::find_posted(plan::Rank source, std::uint32_t tag) {
  return std::find_if(posted_.begin(), posted_.end(), [&](Posted const& posted) { return posted.takes(source, tag); });
}

MessageTable::Arrival MessageTable::take(Arrivals& from, Arrivals::iterator which) {
  auto arrival = std::move(*which);
  from.erase(which);
  if (arrival.run == 0) {
    auto& kept = kept_[arrival.source];
    --kept.messages;
    kept.bytes -= arrival.content.size();
  }
  return arrival;
}

std::optional<std::uint64_t> MessageTable::meet(plan::Rank source, links::Envelope const& envelope) {
  if (envelope.sequence != next_[source]) return std::nullopt;
  auto const found = find_posted(source, envelope.tag);
  if (found == posted_.end()) return std::nullopt;
  auto const id = found->id;
  posted_.erase(found);
  ++next_[source];
  admit_those_ahead(source);
  return id;
}

bool MessageTable::arrived(Arrival arrival) {
  auto const source = arrival.source;
  auto const sequence = arrival.envelope.sequence;
  bool const is_known = std::any_of(ahead_.begin(), ahead_.end(), [&](Arrival const& other) {
    return other.source == source && other.envelope.sequence == sequence;
  });
  if (sequence < next_[source] || is_known) return false;
  if (arrival.run == 0) {
    ++kept_[source].messages;
    kept_[source].bytes += arrival.content.size();
  }
  ahead_.push_back(std::move(arrival));
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
    unmatched_.push_back(std::move(*found));
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
  auto const found = std::find_if(unmatched_.begin(), unmatched_.end(), [&](Arrival const& arrival) {
    return wanted.takes(arrival.source, arrival.envelope.tag);
  });
  if (found == unmatched_.end()) return std::nullopt;
  if (static_cast<std::size_t>(found - unmatched_.begin()) < looked_at_) --looked_at_;
  return take(unmatched_, found);
}

void MessageTable::forget(std::uint64_t id) {
  std::erase_if(posted_, [id](Posted const& posted) { return posted.id == id; });
}

std::optional<MessageTable::Match> MessageTable::match() {
  for (; looked_at_ < unmatched_.size(); ++looked_at_) {
    auto const arrival = unmatched_.begin() + static_cast<std::ptrdiff_t>(looked_at_);
    auto const found = find_posted(arrival->source, arrival->envelope.tag);
    if (found == posted_.end()) continue;
    auto const id = found->id;
    posted_.erase(found);
    return Match{id, take(unmatched_, arrival)};
  }
  return std::nullopt;
}

std::vector<MessageTable::Arrival> MessageTable::take_all() {
  std::vector<Arrival> all;
  for (auto* const list : {&unmatched_, &ahead_})
    while (!list->empty()) all.push_back(take(*list, list->begin()));
  looked_at_ = 0;
  return all;
}

}  // namespace chorus::engine
