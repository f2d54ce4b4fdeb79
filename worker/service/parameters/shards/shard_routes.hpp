// Requests of the coordinator and of other owners about the shards of this worker.
#pragma once

#include <optional>

#include "http/routing/router.hpp"
#include "worker/parameters/serving/shard_book.hpp"
#include "worker/service/parameters/requests/parameter_request.hpp"
#include "worker/service/parameters/shards/checkpoint_store.hpp"
#include "worker/service/parameters/shards/shard_maker.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the object, which outlives the server's stop().
class ShardRoutes {
 public:
  ShardRoutes(parameters::ShardBook& book, CheckpointStore& checkpoints, ShardMaker& maker, tensors::Pool& pool,
              Helper& helper)
      : book_(book), checkpoints_(checkpoints), maker_(maker), reader_(pool, helper) {}

  void add_to(http::Router& router);

 private:
  using Answering = boost::asio::awaitable<http::Response>;

  Answering assign(http::Request const& request, http::Body& body);
  Answering assign_all(http::Body& body);
  boost::asio::awaitable<std::optional<http::Problem>> take(api::ShardAssignment const& assignment);
  Answering show(http::Request const& request, http::Body& body);
  Answering erase(http::Request const& request, http::Body& body);
  Answering log(http::Request const& request, http::Body& body);
  Answering array(http::Request const& request, http::Body& body);
  Answering state(http::Request const& request, http::Body& body);
  Answering complete(http::Request const& request, http::Body& body);

  struct Target {
    std::shared_ptr<parameters::ShardHost> host;
    std::uint32_t epoch = 0;
    std::optional<std::uint64_t> history;  // of the requesting copy, if it says so
  };
  [[nodiscard]] http::Checked<Target> target_of(http::Request const& request) const;

  parameters::ShardBook& book_;
  CheckpointStore& checkpoints_;
  ShardMaker& maker_;
  PushReader reader_;
};

}  // namespace chorus::service
