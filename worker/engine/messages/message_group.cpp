#include "worker/engine/messages/message_group.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/trace/run_identity.hpp"

namespace chorus::engine {
namespace {

constexpr std::size_t kinds_max = 32;

std::vector<std::string> channels_of(GroupMembership const& membership) {
  std::vector<std::string> names;
  for (auto const& member : membership.members)
    names.push_back(membership.name + "/message/" + std::to_string(membership.rank) + '/' +
                    std::to_string(member.rank));
  return names;
}

}  // namespace

MessageGroup::MessageGroup(GroupMembership membership)
    : sequences(membership.members.size()),
      table(membership.members.size()),
      routes(membership.members.size()),
      membership_(std::move(membership)),
      channels_(channels_of(membership_)),
      watches_(membership_.name + "/watch/" + std::to_string(membership_.rank)) {}

std::uint64_t MessageGroup::run_to(plan::Rank peer, std::uint64_t sequence) const {
  return local_run_number(channels_[peer], membership_.epoch, sequence);
}

std::uint64_t MessageGroup::next_watch() { return local_run_number(watches_, membership_.epoch, watched_++); }

std::shared_ptr<RunKind> MessageGroup::kind(MessageWay way, plan::Rank peer, std::uint64_t bytes) {
  auto const found = std::find_if(kept_.rbegin(), kept_.rend(), [&](Kept const& kept) {
    return kept.way == way && kept.peer == peer && kept.bytes == bytes;
  });
  if (found != kept_.rend()) {
    std::rotate(found.base() - 1, found.base(), kept_.end());
    return kept_.back().kind;
  }
  if (kept_.size() == kinds_max) kept_.erase(kept_.begin());
  kept_.push_back({way, peer, bytes, std::make_shared<RunKind>(message_run(membership_, way, peer, bytes))});
  return kept_.back().kind;
}

}  // namespace chorus::engine
