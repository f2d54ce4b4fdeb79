// Checkpoints of parameters: every owner writes its shards into one directory, and one of them commits.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/runtime/task_group.hpp"
#include "server/coordinator/membership/worker_client.hpp"
#include "server/coordinator/parameters/checkpoint_alignment.hpp"
#include "server/coordinator/parameters/parameter_directory.hpp"

namespace chorus::coordinator {

// Used on one thread. The objects in the tools outlive stop().
class Checkpoints {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    ParameterDirectory& directory;
    metrics::CoordinatorMetrics& metrics;
    spdlog::logger& log;
  };
  // Checkpoints that are made at intervals.
  struct Schedule {
    std::string name;  // "": only on request
    std::chrono::seconds interval{300};
    std::uint32_t keep = 3;
  };
  Checkpoints(Tools tools, Schedule schedule);
  Checkpoints(Checkpoints const&) = delete;
  Checkpoints& operator=(Checkpoints const&) = delete;

  void start();
  boost::asio::awaitable<void> stop();

  // Makes one checkpoint; one at a time of each name. Problems: invalid_field for a name; unknown_parameter;
  // parameter_lost for one that cannot be written; busy; worker_unreachable and a worker's problems. After a problem
  // the earlier checkpoints are unchanged, and the files of this one are removed.
  boost::asio::awaitable<http::Checked<api::CheckpointAnswer>> make(api::CheckpointRequest request);

 private:
  struct Owner {
    std::string url;
    std::vector<api::CheckpointShard> shards;
  };
  struct Plan {
    std::vector<api::Parameter> parameters;
    std::map<std::string, Owner> owners;  // by worker
  };
  struct Writing;
  boost::asio::awaitable<void> repeat();
  boost::asio::awaitable<http::Checked<api::CheckpointAnswer>> write(api::CheckpointRequest request, Plan plan);
  boost::asio::awaitable<void> discard(std::string name, std::uint64_t number, std::map<std::string, Owner> owners);
  boost::asio::awaitable<void> discard_file(std::shared_ptr<Writing> writing, std::string worker, std::string url);
  boost::asio::awaitable<void> write_file(std::shared_ptr<Writing> writing, std::string worker, Owner owner);
  [[nodiscard]] http::Checked<Plan> plan_of(std::vector<std::string> const& names) const;

  Tools const tools_;
  Schedule const schedule_;
  CheckpointAlignment alignment_;
  std::set<std::string> in_the_making_;
  std::map<std::string, std::uint64_t> last_numbers_;  // by name: numbers are never given twice
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
