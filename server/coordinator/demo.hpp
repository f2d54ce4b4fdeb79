// A collective to look at, for who has none yet: tensors are put on the members of a group, and an all_reduce of them
// is launched like any other. The one case in which the coordinator sends bytes of a tensor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>

#include "http/api/status.hpp"
#include "http/task_group.hpp"
#include "server/coordinator/cluster.hpp"
#include "server/coordinator/collectives.hpp"

namespace chorus::coordinator {

// On one thread. What the tools refer to outlives stop().
class Demo {
 public:
  struct Tools {
    boost::asio::any_io_executor executor;
    WorkerClient& workers;
    Cluster& cluster;
    Collectives& collectives;
  };
  explicit Demo(Tools tools);
  ~Demo();
  Demo(Demo const&) = delete;
  Demo& operator=(Demo const&) = delete;

  // Problems: invalid_field; unknown_group and those of Cluster::put_group and Collectives::launch; worker_unreachable
  // and what a worker says to a tensor.
  boost::asio::awaitable<http::Checked<std::shared_ptr<Record>>> launch(api::DemoRequest request);

  boost::asio::awaitable<void> stop();

 private:
  struct Spreading;
  boost::asio::awaitable<http::Checked<api::Group>> find_group(std::optional<std::string> name);
  boost::asio::awaitable<void> put_on(std::shared_ptr<Spreading> spreading, api::Member member);

  Tools const tools_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
