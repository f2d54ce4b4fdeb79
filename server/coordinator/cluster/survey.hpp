// Asks many workers the same question, only for display.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/runtime/task_group.hpp"
#include "http/api/cluster/links.hpp"
#include "http/api/parameters/parameters.hpp"
#include "http/json/problem.hpp"
#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

struct SurveyPatience {
  std::chrono::milliseconds answer{1000};  // for a worker to answer
  std::chrono::milliseconds fresh{500};    // age up to which answers are used again
};

// Used on one thread. The objects in the tools outlive stop().
class Survey {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    Cluster& cluster;
  };
  Survey(Tools tools, SurveyPatience patience);
  ~Survey();
  Survey(Survey const&) = delete;
  Survey& operator=(Survey const&) = delete;

  // Returns the traffic between the members of a group, or between all workers. Workers that do not answer in time are
  // listed as silent. Problems: unknown_group; unavailable above 256 workers.
  boost::asio::awaitable<http::Checked<api::LinkTrafficList>> traffic(std::optional<std::string> group);

  // Returns the owners' reports on the shards of a parameter; a shard whose owner does not answer is left out.
  boost::asio::awaitable<api::ShardStatusList> shards(api::Parameter parameter);

  boost::asio::awaitable<void> stop();

 private:
  struct Traffic;
  struct Shards;
  struct Asked {
    std::string id;
    std::string url;
  };

  [[nodiscard]] http::Checked<std::vector<Asked>> whom(std::optional<std::string> const& group) const;
  boost::asio::awaitable<void> ask_links(std::shared_ptr<Traffic> traffic, Asked worker, http::TimePoint deadline);
  boost::asio::awaitable<void> ask_shard(std::shared_ptr<Shards> shards, api::ParameterEndpoint owner,
                                         std::string parameter, http::TimePoint deadline);

  Tools const tools_;
  SurveyPatience const patience_;
  std::map<std::string, std::shared_ptr<Traffic>> last_;  // by group, "": all
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
