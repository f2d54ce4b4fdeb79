// Makes a demonstration: puts tensors on the members of a group, and launches an all_reduce of them like any other.
// Only here does the coordinator send bytes of a tensor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>

#include "base/runtime/task_group.hpp"
#include "http/api/cluster/status.hpp"
#include "server/coordinator/cluster/cluster.hpp"
#include "server/coordinator/collectives/collectives.hpp"

namespace chorus::coordinator {

// Used on one thread. The objects in the tools outlive stop().
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

  // Problems: invalid_field; unknown_group; those of Cluster::put_group and Collectives::launch; worker_unreachable; a
  // worker's problem with the tensor.
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
