#include "worker/service/held_views.hpp"

namespace chorus::service {
namespace {

constexpr std::chrono::seconds patience{30};  // with a reader between two pieces
constexpr std::size_t most = 256;             // more hold nothing, and read in pieces only what does not change

}  // namespace

void HeldViews::let_go(http::TimePoint now) {
  std::erase_if(held_, [now](auto const& entry) { return entry.second.until < now; });
}

void HeldViews::hold(Key key, parameters::ShardHost::View view, http::TimePoint now) {
  let_go(now);
  if (held_.size() >= most && !held_.contains(key)) return;
  auto& held = held_[std::move(key)];
  held.view = std::move(view);
  ++held.readers;
  held.until = now + patience;
}

std::optional<parameters::ShardHost::View> HeldViews::find(Key const& key, http::TimePoint now) {
  let_go(now);
  auto const found = held_.find(key);
  if (found == held_.end()) return std::nullopt;
  found->second.until = now + patience;
  return found->second.view;
}

void HeldViews::release(Key const& key) {
  auto const found = held_.find(key);
  if (found != held_.end() && --found->second.readers == 0) held_.erase(found);
}

}  // namespace chorus::service
