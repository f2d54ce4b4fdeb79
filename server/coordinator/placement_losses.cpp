// Shards that are lost while their worker lives.
#include <boost/asio/use_awaitable.hpp>

#include "server/coordinator/parameter_directory.hpp"

namespace chorus::coordinator {

void ParameterDirectory::shard_lost(std::string const& name, std::uint32_t number, std::string const& worker,
                                    std::string const& incarnation) {
  auto const found = records_.find(name);
  if (found == records_.end() || number >= found->second->shards.size()) return;
  auto const record = found->second;
  auto& shard = record->shards[number];
  auto const is_it = [&](std::optional<api::Member> const& member) {
    return member && member->worker == worker && member->incarnation == incarnation;
  };
  if (is_it(shard.owner)) {
    // Told once more to own it, it says that it does not have it, and is followed.
    shard.clients_epoch = UINT32_MAX;
    look_again({name, number});
  } else if (is_it(shard.backup)) {
    tools_.log.warn("parameter {} shard={} has lost its backup on worker {}", name, number, worker);
    tasks_.spawn("go on without a backup of " + name, go_on_without_backup(record, number));
  }
}

// Its owner acknowledges nothing until it hears of this.
boost::asio::awaitable<void> ParameterDirectory::go_on_without_backup(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  if (!shard.owner || !shard.backup) co_return;
  set(record, number, false, std::nullopt);
  draw_epoch(*record, number);
  auto const problem = co_await tell(record, number, *shard.owner, true, false);
  shard.clients_epoch = problem ? UINT32_MAX : record->clients_epoch;  // told again, if it has not heard
  keep(*record, number);
  look_again({record->parameter.name, number});
}

}  // namespace chorus::coordinator
