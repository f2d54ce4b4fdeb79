#include "worker/engine/messages/waiting_receives.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace chorus::engine {
namespace {

auto find(MessageGroup& group, std::uint64_t receive) {
  return std::ranges::find(group.waiting, receive, [](auto const& each) { return each.request.number; });
}

}  // namespace

WaitingReceives::WaitingReceives(MessageRuns& runs, Failed failed) : runs_(runs), failed_(std::move(failed)) {}

void WaitingReceives::add(MessageGroup& group, MessageRequest const& request, MessageDone done) {
  group.table.post(request.number, request.peer, request.tag);
  group.waiting.push_back({request, std::move(done)});
  ++unwatched_;
  runs_.watch_soon();
}

std::optional<MessageGroup::Waiting> WaitingReceives::remove(MessageGroup& group, std::uint64_t receive) {
  auto const found = find(group, receive);
  if (found == group.waiting.end()) return std::nullopt;
  auto waiting = std::move(*found);
  group.waiting.erase(found);
  if (waiting.watch == 0)
    --unwatched_;
  else
    runs_.end_watch(waiting.watch);
  return waiting;
}

void WaitingReceives::watch(std::span<std::shared_ptr<MessageGroup> const> groups, bool all) {
  struct Unwatched {
    std::shared_ptr<MessageGroup> group;
    std::uint64_t receive = 0;
  };
  std::vector<Unwatched> unwatched;
  for (auto const& group : groups)
    for (auto& each : group->waiting) {
      if (each.watch != 0 || !(std::exchange(each.was_seen, true) || all)) continue;
      each.watch = group->next_watch();
      --unwatched_;
      unwatched.push_back({group, each.request.number});
    }
  // A run that cannot begin ends its receive, and perhaps others.
  for (auto const& [group, receive] : unwatched) {
    auto const found = find(*group, receive);
    if (found == group->waiting.end()) continue;
    runs_.start_run(group->kind(MessageWay::receive, found->request.peer, 0),
                    {found->watch, {}, {}, found->request.deadline},
                    [this, group, receive](RunResult const& ended) { watch_ended(*group, receive, ended); });
  }
}

// A watch ends well when its message has come: then nothing waits for it.
void WaitingReceives::watch_ended(MessageGroup& group, std::uint64_t receive, RunResult const& ended) {
  if (ended.status.has_value()) return;
  auto const failed = remove(group, receive);
  if (!failed) return;
  group.table.forget(receive);
  failed_(group, *failed, ended);
}

}  // namespace chorus::engine
