#include "server/coordinator/diagnosis/stragglers.hpp"

#include <algorithm>
#include <cmath>

namespace chorus::coordinator {
namespace {

constexpr double noticeable_s = 0.005;

}  // namespace

std::vector<double> lateness_s(std::vector<double> const& durations_s) {
  std::vector<double> late_s(durations_s.size(), 0);
  if (durations_s.size() < 2) return late_s;
  auto sorted = durations_s;
  std::ranges::sort(sorted, std::greater());
  auto const middle_s = sorted[(sorted.size() - 1) / 2];
  for (std::size_t rank = 0; rank < late_s.size(); ++rank)
    if (auto const later_s = middle_s - durations_s[rank]; later_s >= std::max(noticeable_s, middle_s / 2))
      late_s[rank] = later_s;
  return late_s;
}

std::string slowness(api::SlowMember const& member) {
  return "rank " + std::to_string(member.rank) + " (" + member.worker + ") comes late to " +
         std::to_string(std::lround(member.share * 100)) + " % of the operations, by " +
         std::to_string(std::lround(member.late_seconds * 1000)) + " ms";
}

Stragglers::Book& Stragglers::book_of(api::Group const& group) {
  auto& book = books_[group.name];
  if (book.epoch == group.epoch && book.members.size() == group.members.size()) return book;
  book.epoch = group.epoch;
  book.members.assign(group.members.size(), {});
  return book;
}

void Stragglers::finished(api::Group const& group, std::vector<double> const& durations_s) {
  look(group, book_of(group), durations_s, 1);
}

void Stragglers::reported(api::Group const& group, std::uint32_t rank, api::GroupCalls const& calls) {
  auto& book = book_of(group);
  if (rank >= book.members.size() || calls.calls < book.members[rank].reported.calls) return;
  book.members[rank].reported = calls;
  auto fewest = calls.calls - book.members[rank].looked_at.calls;
  for (auto const& member : book.members) fewest = std::min(fewest, member.reported.calls - member.looked_at.calls);
  if (fewest == 0) return;
  std::vector<double> means_s;
  for (auto& member : book.members) {
    auto const new_calls = static_cast<double>(member.reported.calls - member.looked_at.calls);
    means_s.push_back((member.reported.seconds - member.looked_at.seconds) / new_calls);
    member.looked_at = member.reported;
  }
  look(group, book, means_s, static_cast<double>(fewest));
}

void Stragglers::look(api::Group const& group, Book& book, std::vector<double> const& durations_s, double operations) {
  if (durations_s.size() != book.members.size()) return;
  auto const late_s = lateness_s(durations_s);
  auto const counts = 1 - std::pow(1 - weight, operations);
  for (std::uint32_t rank = 0; rank < book.members.size(); ++rank) {
    auto& member = book.members[rank];
    auto const is_late = late_s[rank] > 0;
    member.share += counts * ((is_late ? 1 : 0) - member.share);
    if (is_late) member.late_s += (member.late_s == 0 ? 1 : counts) * (late_s[rank] - member.late_s);
    auto const was_slow = member.is_slow;
    member.is_slow = member.share > (was_slow ? well_below : slow_above);
    if (member.is_slow != was_slow && listener_) listener_(group, show(group, rank, member), member.is_slow);
  }
}

api::SlowMember Stragglers::show(api::Group const& group, std::uint32_t rank, Member const& member) {
  return {rank, group.members[rank].worker, member.late_s, member.share};
}

std::vector<api::SlowMember> Stragglers::slow(api::Group const& group) const {
  std::vector<api::SlowMember> slow;
  auto const book = books_.find(group.name);
  if (book == books_.end() || book->second.epoch != group.epoch) return slow;
  auto const& members = book->second.members;
  for (std::uint32_t rank = 0; rank < members.size(); ++rank)
    if (members[rank].is_slow) slow.push_back(show(group, rank, members[rank]));
  std::ranges::sort(slow, std::greater(), &api::SlowMember::late_seconds);
  return slow;
}

}  // namespace chorus::coordinator
