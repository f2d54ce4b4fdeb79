#include "worker/parameters/shard/elements/image.hpp"

#include <algorithm>

namespace chorus::parameters {

void leave_open_round(ShardImage& image) {
  auto& state = image.state;
  auto const client_of = [&](api::ShardHeld const& held) {
    return std::ranges::find(state.clients, held.client, &api::ShardClient::name);
  };
  auto const clock_of = [&](api::ShardHeld const& held) {
    return std::ranges::find(state.clocks, held.client, &api::ShardClock::client);
  };
  // A client that has set values after its push of the round would have to set them again: then the round is kept.
  auto const is_last = [&](api::ShardHeld const& held) {
    auto const client = client_of(held);
    return client != state.clients.end() && client->next_sequence == held.sequence + 1 &&
           clock_of(held) != state.clocks.end();
  };
  if (!std::ranges::all_of(state.held, is_last)) return;
  for (auto const& held : state.held) {
    client_of(held)->next_sequence = held.sequence;
    --clock_of(held)->clocks_done;
    --state.position;
  }
  state.held.clear();
  std::erase_if(state.clients, [](auto const& client) { return client.next_sequence == 0; });
  std::erase_if(image.arrays, [](auto const& array) { return array.name.starts_with("held/"); });
}

}  // namespace chorus::parameters
