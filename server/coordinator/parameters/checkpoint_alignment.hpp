// Brings all shards of a parameter to the same position among its pushes before a checkpoint is written. The checkpoint
// then has one state that the parameter was in, and can be loaded with any number of shards.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

// Used on one thread. The workers outlive stop().
//
// Each owner stops its shard between two pushes, and reports the position of each client. Every shard can reach the
// farthest position, because a client that pushed to one shard pushes to all. The shards go on to this position, copy
// their state there, and continue. Pushes wait for two exchanges with the workers, and at most for hold_ms. If a client
// died between two shards, the shards wait for it once; the next alignment knows its abandoned position.
class CheckpointAlignment {
 public:
  CheckpointAlignment(boost::asio::any_io_executor executor, WorkerClient& workers);
  CheckpointAlignment(CheckpointAlignment const&) = delete;
  CheckpointAlignment& operator=(CheckpointAlignment const&) = delete;

  // Returns the names of the parameters whose shards are not at the same position. Problems: worker_unreachable, and an
  // owner's problems.
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
  // Returns the answers of all owners to this step.
  boost::asio::awaitable<std::shared_ptr<Asked>> ask_all(Step step, std::string checkpoint, Owners owners);
  boost::asio::awaitable<void> ask(std::shared_ptr<Asked> asked, Step step, std::string checkpoint, std::string worker,
                                   Owner owner);

  boost::asio::any_io_executor executor_;
  WorkerClient& workers_;
  // By parameter: positions of clients that some of its shards reached and others did not.
  std::map<std::string, Place, std::less<>> abandoned_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
