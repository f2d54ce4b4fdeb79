#include "server/coordinator/placements/shard_drops.hpp"

#include <algorithm>

#include "base/runtime/pause.hpp"
#include "server/coordinator/placements/members.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

// In the past unless the worker is silent.
TimePoint end_of_lease(Membership const& membership, api::Member const& member) {
  auto const* const worker = membership.find(member.worker);
  bool const is_silent = worker != nullptr && !worker->ready && api::to_hex(worker->incarnation) == member.incarnation;
  return is_silent ? worker->heard + worker->lease : TimePoint::min();
}

}  // namespace

ShardDrops::ShardDrops(PlacementTools const& tools) : tools_(tools), dropped_(tools.executor), tasks_(tools.executor) {}

asio::awaitable<void> ShardDrops::stop() {
  is_stopping_ = true;
  tasks_.cancel();
  co_await tasks_.join();
}

void ShardDrops::drop(std::string const& name, std::uint32_t shard, std::vector<Copy> copies) {
  for (auto& copy : copies) tasks_.spawn("drop a shard of " + name, tell(name, shard, std::move(copy)));
}

void ShardDrops::drop_all(ParameterRecord const& record) {
  auto const& name = record.parameter.name;
  for (std::uint32_t i = 0; i < record.shards.size(); ++i)
    for (auto& copy : record.shards[i].copies()) {
      ++dropping_[name];
      tasks_.spawn("drop a shard of " + name, drop_to_the_end(name, i, std::move(copy)));
    }
}

asio::awaitable<void> ShardDrops::tell(std::string name, std::uint32_t shard, Copy copy) {
  auto const& holder = copy.holder;
  while (!is_stopping_) {
    auto const said = co_await tools_.workers.drop_shard(holder.url, name, shard, copy.epoch,
                                                         Clock::now() + tools_.patience.assignment);
    if (said.has_value() || !is_ready(tools_.cluster.membership(), holder)) co_return;
    co_await http::pause(tools_.patience.repetition);
  }
}

// A worker that cannot be reached may serve the shard while its lease lasts.
asio::awaitable<void> ShardDrops::drop_to_the_end(std::string name, std::uint32_t shard, Copy copy) {
  co_await tell(name, shard, copy);
  co_await http::pause_until(end_of_lease(tools_.cluster.membership(), copy.holder));
  if (auto const found = dropping_.find(name); --found->second == 0) dropping_.erase(found);
  dropped_.notify_all();
}

asio::awaitable<std::optional<Problem>> ShardDrops::until_dropped(std::string name) {
  for (auto const deadline = Clock::now() + tools_.patience.dropping; dropping_.contains(name);) {
    if (Clock::now() >= deadline)
      co_return Problem(ProblemCode::unavailable, "a deleted parameter " + name +
                                                      " is still served: its worker renews its lease and does not "
                                                      "drop it; try again, or use another name");
    co_await dropped_.wait_until(deadline);
  }
  co_return std::nullopt;
}

asio::awaitable<void> ShardDrops::until_leases_end(ParameterRecordPtr record) {
  auto end = TimePoint::min();
  for (auto const& shard : record->shards)
    for (auto const* member : {&shard.owner, &shard.backup, &shard.former})
      if (*member) end = std::max(end, end_of_lease(tools_.cluster.membership(), **member));
  co_await http::pause_until(end);
}

}  // namespace chorus::coordinator
