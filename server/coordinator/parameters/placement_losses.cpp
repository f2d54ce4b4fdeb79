// Shards that are lost while their worker lives.
#include <boost/asio/use_awaitable.hpp>

#include "server/coordinator/parameters/parameter_directory.hpp"

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
    // When the owner is told again to own the shard, it reports the loss, and its backup takes over.
    shard.clients_epoch = UINT32_MAX;
    look_again({name, number});
  } else if (is_it(shard.incoming)) {
    tools_.log.warn("parameter {} shard={} is not filled any more on worker {}", name, number, worker);
    set_incoming(record, number, std::nullopt);  // the task that waits for it tells the owner
  } else if (is_it(shard.backup)) {
    tools_.log.warn("parameter {} shard={} has lost its backup on worker {}", name, number, worker);
    tasks_.spawn("go on without a backup of " + name, go_on_without_backup(record, number));
  }
}

// The owner acknowledges no push until it knows of this change.
boost::asio::awaitable<void> ParameterDirectory::go_on_without_backup(RecordPtr record, std::uint32_t number) {
  auto& shard = record->shards[number];
  if (!shard.owner || !shard.backup) co_return;
  set(record, number, false, std::nullopt);
  shard.is_unconfirmed = true;  // until the owner has been told
  static_cast<void>(co_await confirm_owner(record, number));
  look_again({record->parameter.name, number});
}

}  // namespace chorus::coordinator
