// Before a checkpoint is written: all shards of a parameter come to the same place among its pushes, so that what is
// written is one state that the parameter was in, and can be loaded with any number of shards.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "server/coordinator/worker_client.hpp"

namespace chorus::coordinator {

// On one thread. The workers outlive stop().
//
// Each owner stops its shard between two pushes, and says how far each client has come there. The farthest place is one
// that all others reach, because whoever pushed to one shard pushes to all of them: they go on to it, are remembered as
// they are there, and go on with everything else. Pushes wait for two exchanges with the workers, and hold_ms at most.
// A client that died between two shards is waited for once; what it left behind is known the next time.
class CheckpointAlignment {
 public:
  CheckpointAlignment(boost::asio::any_io_executor executor, WorkerClient& workers);
  CheckpointAlignment(CheckpointAlignment const&) = delete;
  CheckpointAlignment& operator=(CheckpointAlignment const&) = delete;

  // Gives the names of those whose shards are not at the same place. Problems: worker_unreachable, and what an owner
  // answered.
  boost::asio::awaitable<http::Checked<std::vector<std::string>>> align(std::string checkpoint, std::uint64_t number,
                                                                        std::vector<api::Parameter> parameters);
  boost::asio::awaitable<void> stop();

  static constexpr std::uint64_t hold_ms = 2000;

 private:
  using Key = std::pair<std::string, std::uint32_t>;           // a parameter and the number of a shard
  using Progress = std::pair<std::string, std::uint64_t>;      // incarnation, which sorts as text, and next sequence
  using Place = std::map<std::string, Progress, std::less<>>;  // by client
  struct Owner {
    std::string url;
    api::CheckpointPlaces shards;
  };
  using Owners = std::map<std::string, Owner>;  // by worker
  enum class Step { hold, keep };
  struct Asked;

  boost::asio::awaitable<std::optional<http::Problem>> align_some(std::string checkpoint, std::uint64_t number,
                                                                  std::vector<api::Parameter> parameters,
                                                                  std::vector<std::string>* unaligned);
  // What all owners said to it.
  boost::asio::awaitable<std::shared_ptr<Asked>> ask_all(Step step, std::string checkpoint, Owners owners);
  boost::asio::awaitable<void> ask(std::shared_ptr<Asked> asked, Step step, std::string checkpoint, std::string worker,
                                   Owner owner);

  boost::asio::any_io_executor executor_;
  WorkerClient& workers_;
  // By parameter: how far clients had come with some of its shards that the others did not reach.
  std::map<std::string, Place, std::less<>> abandoned_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
