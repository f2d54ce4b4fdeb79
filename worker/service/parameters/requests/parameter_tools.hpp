// What handlers of parameter requests share.
#pragma once

#include <functional>

#include "worker/service/parameters/requests/parameter_gateway.hpp"
#include "worker/service/parameters/requests/parameter_target.hpp"

namespace chorus::service {

// Called for answers of an owner, to count them.
struct ParameterCounts {
  std::function<void()> pulled, unchanged;
};

struct ParameterTools {
  boost::asio::any_io_executor executor;  // of the control thread
  parameters::ShardBook& book;
  ParameterTargets& targets;
  parameters::Access& access;
  tensors::Pool& pool;
  Helper& helper;
  PushReader& reader;
  ParameterGateway& gateway;
  ParameterCounts const& counts;
};

}  // namespace chorus::service
