#include "worker/parameters/shard/clocks.hpp"

#include <algorithm>

namespace chorus::parameters {

Clocks::Clocks(std::int64_t staleness, std::vector<std::string> const& clients) : staleness_(staleness) {
  for (auto const& client : clients) clients_.push_back({client, 0});
}

std::optional<std::size_t> Clocks::place(std::string_view client) const {
  auto const found = std::ranges::find(clients_, client, &Progress::client);
  if (found == clients_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - clients_.begin());
}

// Clocks that every client must have done for a reader at `clock`.
std::uint64_t Clocks::needed(std::uint64_t clock) const {
  auto const behind = static_cast<std::uint64_t>(staleness_);
  return count() && clock > behind ? clock - behind : 0;
}

bool Clocks::is_open(std::uint64_t clock) const { return slowest() >= needed(clock); }

std::vector<std::string> Clocks::awaited(std::uint64_t clock) const {
  std::vector<std::string> names;
  for (auto const& client : clients_)
    if (client.done < needed(clock)) names.push_back(client.client);
  return names;
}

std::uint64_t Clocks::slowest() const {
  auto const found = std::ranges::min_element(clients_, {}, &Progress::done);
  return found == clients_.end() ? 0 : found->done;
}

std::uint64_t Clocks::fastest() const {
  auto const found = std::ranges::max_element(clients_, {}, &Progress::done);
  return found == clients_.end() ? 0 : found->done;
}

void Clocks::change(std::vector<std::string> const& clients) {
  std::optional<std::uint64_t> slowest_that_stays;
  std::vector<Progress> changed;
  for (auto const& client : clients) {
    auto const before = place(client);
    changed.push_back({client, before ? clients_[*before].done : 0});
    if (before) slowest_that_stays = std::min(slowest_that_stays.value_or(UINT64_MAX), changed.back().done);
  }
  auto const begins_at = slowest_that_stays.value_or(fastest());
  for (auto& client : changed)
    if (!place(client.client)) client.done = begins_at;
  clients_ = std::move(changed);
}

}  // namespace chorus::parameters
