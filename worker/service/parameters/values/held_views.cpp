#include "worker/service/parameters/values/held_views.hpp"

namespace chorus::service {
namespace {

constexpr std::chrono::seconds reader_patience{30};  // for the time between two pieces
constexpr std::size_t held_max = 256;  // beyond this nothing is held, and only unchanged values can be read in pieces

}  // namespace

void HeldViews::let_go(http::TimePoint now) {
  std::erase_if(held_, [now](auto const& entry) { return entry.second.until < now; });
}

void HeldViews::hold(Key key, std::string reader, parameters::ShardHost::View view, http::TimePoint now) {
  let_go(now);
  if (held_.size() >= held_max && !held_.contains(key)) return;
  auto& held = held_[std::move(key)];
  held.view = std::move(view);
  held.readers.insert(std::move(reader));
  held.until = now + reader_patience;
}

std::optional<parameters::ShardHost::View> HeldViews::find(Key const& key, http::TimePoint now) {
  let_go(now);
  auto const found = held_.find(key);
  if (found == held_.end()) return std::nullopt;
  found->second.until = now + reader_patience;
  return found->second.view;
}

void HeldViews::release(Key const& key, std::string const& reader) {
  auto const found = held_.find(key);
  if (found != held_.end() && found->second.readers.erase(reader) != 0 && found->second.readers.empty())
    held_.erase(found);
}

}  // namespace chorus::service
