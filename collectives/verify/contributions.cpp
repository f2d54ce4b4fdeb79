#include "collectives/verify/contributions.hpp"

#include <algorithm>
#include <utility>

namespace chorus::verify {

Contributions::Id Contributions::input(plan::Rank rank, std::uint32_t chunk, bool finished) {
  auto const begin = runs_.size();
  runs_.push_back({chunk, rank, rank + 1, 1});
  return keep(begin, finished);
}

Contributions::Id Contributions::sum(Id first, Id second) {
  auto const begin = runs_.size();
  auto a = values_[first].begin, b = values_[second].begin;
  auto const a_end = values_[first].end, b_end = values_[second].end;
  // Rest of the present run of each side. Copies, because runs_ grows.
  auto left = runs_[a], right = runs_[b];
  auto const next = [this](std::size_t& at, std::size_t end, Run& run) {
    if (++at < end) run = runs_[at];
  };
  while (a < a_end && b < b_end) {
    if (std::pair(left.chunk, left.end) <= std::pair(right.chunk, right.begin)) {
      append(begin, left);
      next(a, a_end, left);
    } else if (std::pair(right.chunk, right.end) <= std::pair(left.chunk, left.begin)) {
      append(begin, right);
      next(b, b_end, right);
    } else if (left.begin != right.begin) {  // the head of the earlier run is in one value only
      auto& earlier = left.begin < right.begin ? left : right;
      auto const head = std::max(left.begin, right.begin);
      append(begin, {earlier.chunk, earlier.begin, head, earlier.count});
      earlier.begin = head;
    } else {
      auto const end = std::min(left.end, right.end);
      append(begin, {left.chunk, left.begin, end, left.count + right.count});
      left.begin = right.begin = end;
      if (left.begin == left.end) next(a, a_end, left);
      if (right.begin == right.end) next(b, b_end, right);
    }
  }
  for (; a < a_end; next(a, a_end, left)) append(begin, left);
  for (; b < b_end; next(b, b_end, right)) append(begin, right);
  return keep(begin, false);
}

Contributions::Id Contributions::finish(Id value) {
  auto copy = values_[value];
  copy.finished = true;
  values_.push_back(copy);
  return static_cast<Id>(values_.size() - 1);
}

bool Contributions::complete(Id value, std::uint32_t ranks) const {
  auto const& v = values_[value];
  if (v.end - v.begin != 1) return false;
  auto const& run = runs_[v.begin];
  return run.begin == 0 && run.end == ranks && run.count == 1;
}

bool Contributions::complete(Id value, std::uint32_t ranks, std::uint32_t chunk) const {
  return complete(value, ranks) && runs_[values_[value].begin].chunk == chunk;
}

bool Contributions::is_input(Id value, plan::Rank rank, std::uint32_t chunk) const {
  auto const& v = values_[value];
  if (v.end - v.begin != 1) return false;
  auto const& run = runs_[v.begin];
  return run.chunk == chunk && run.begin == rank && run.end == rank + 1 && run.count == 1;
}

bool Contributions::is_alone(Id value) const {
  auto const& v = values_[value];
  if (v.end - v.begin != 1) return false;
  auto const& run = runs_[v.begin];
  return run.end - run.begin == 1 && run.count == 1;
}

std::string Contributions::describe(Id value) const {
  std::string text;
  for (auto i = values_[value].begin; i < values_[value].end; ++i) {
    auto const& run = runs_[i];
    if (!text.empty()) text += ", ";
    text += "chunk " + std::to_string(run.chunk) + " of rank";
    text += run.end - run.begin == 1 ? ' ' + std::to_string(run.begin)
                                     : "s " + std::to_string(run.begin) + ".." + std::to_string(run.end - 1);
    if (run.count > 1) text += " x" + std::to_string(run.count);
  }
  return text;
}

void Contributions::append(std::size_t begin, Run run) {
  if (runs_.size() > begin) {
    auto& last = runs_.back();
    if (last.chunk == run.chunk && last.end == run.begin && last.count == run.count) {
      last.end = run.end;
      return;
    }
  }
  runs_.push_back(run);
}

Contributions::Id Contributions::keep(std::size_t begin, bool finished) {
  values_.push_back({begin, runs_.size(), finished});
  return static_cast<Id>(values_.size() - 1);
}

}  // namespace chorus::verify
