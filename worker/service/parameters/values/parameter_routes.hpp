// Parameters over HTTP: any worker answers for a whole parameter, an owner (?shard=) for its shard.
#pragma once

#include "http/routing/router.hpp"
#include "worker/service/parameters/values/parameter_pulls.hpp"
#include "worker/service/parameters/values/parameter_pushes.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the object, which outlives the server's stop().
class ParameterRoutes {
 public:
  // self: a name that no other process has.
  ParameterRoutes(boost::asio::any_io_executor executor, parameters::ShardBook& book, parameters::Access& access,
                  tensors::Pool& pool, Helper& helper, std::string self, ParameterCounts counts);
  ParameterRoutes(ParameterRoutes const&) = delete;
  ParameterRoutes& operator=(ParameterRoutes const&) = delete;

  void add_to(http::Router& router);
  // Ends what goes on after its request. Call it before the server's stop().
  boost::asio::awaitable<void> stop() { return pushes_.stop(); }
  // Gives back the memory of reads and pushes in pieces whose clients have not gone on.
  void let_go(http::TimePoint now) {
    pulls_.let_go(now);
    pushes_.let_go(now);
  }

 private:
  boost::asio::awaitable<http::Response> list(http::Request const& request);
  boost::asio::awaitable<http::Response> describe(http::Request const& request);

  parameters::ShardBook& book_;
  ParameterCounts const counts_;
  ParameterTargets targets_;
  PushReader reader_;
  ParameterGateway gateway_;
  ParameterPulls pulls_;
  ParameterPushes pushes_;
};

}  // namespace chorus::service
