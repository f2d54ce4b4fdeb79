// A run's part with memory of GPUs that ranks lend each other.
#include <algorithm>

#include "worker/engine/run.hpp"

namespace chorus::engine {

bool Run::has_back_what_it_lent(TimePoint now) const {
  if (!device_) return true;
  return std::all_of(sends_.begin(), sends_.end(), [now](auto const& channel) {
    auto const loan = channel->loan();
    return loan == nullptr || loan->is_back(now);
  });
}

std::optional<bool> Run::may_be_written(ReceiveChannel const& channel, links::Lend const& lend) const {
  bool const may_be = spec_.gpu != nullptr && lend.writes == 1 &&
                      links::uuid_of(lend) == spec_.gpu->gpu().info().uuid && channel.peer() < spec_.program->rank &&
                      channel.may_be_written();
  auto const back = std::ranges::find(sends_, channel.peer(), [](auto const& send) { return send->peer(); });
  return may_be && back != sends_.end() && (*back)->outlet != nullptr ? (*back)->is_borrowed() : false;
}

bool Run::writes_with(plan::Rank peer) const {
  auto const is_written = [peer](auto const& c) { return c->peer() == peer && c->is_written() && !c->finished(); };
  auto const writes = [peer](auto const& c) { return c->peer() == peer && c->writes() && !c->finished(); };
  return std::ranges::any_of(receives_, is_written) || std::ranges::any_of(sends_, writes);
}

bool Run::reads_in_place() const {
  return std::any_of(receives_.begin(), receives_.end(), [](auto const& channel) { return channel->reads_in_place(); });
}

}  // namespace chorus::engine
