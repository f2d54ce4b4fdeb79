#include "worker/service/collectives/groups/unnamed_calls.hpp"

#include <algorithm>

namespace chorus::service {

void UnnamedCalls::begun(Place place, std::string what, std::shared_ptr<http::Reception> reception) {
  calls_.push_back({place, std::move(what), std::move(reception)});
}

std::deque<UnnamedCalls::Call>::iterator UnnamedCalls::find(Place place) {
  return std::ranges::find(calls_, place, &Call::place);
}

void UnnamedCalls::succeeded(Place place) {
  if (auto const call = find(place); call != calls_.end()) call->has_succeeded = true;
}

void UnnamedCalls::failed(Place place) {
  if (auto const call = find(place); call != calls_.end()) calls_.erase(call);
}

std::optional<std::string> UnnamedCalls::lost(Place place) {
  std::optional<std::string> lost;
  for (auto call = calls_.begin(); call != calls_.end() && call->place < place;) {
    auto const state = call->reception->state();
    if (state == http::Reception::State::broken && !lost)
      lost = "call " + std::to_string(call->place.sequence) + " of epoch " + std::to_string(call->place.epoch) + " (" +
             call->what +
             (call->has_succeeded ? ") has succeeded, but its client had gone before it was told"
                                  : ") is under way, and its client has gone");
    call = state == http::Reception::State::open ? call + 1 : calls_.erase(call);
  }
  return lost;
}

}  // namespace chorus::service
