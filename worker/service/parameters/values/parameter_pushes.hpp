// Writes of parameters: gradients, values and rows, whole or in pieces.
#pragma once

#include "worker/service/parameters/requests/parameter_tools.hpp"
#include "worker/service/parameters/values/row_pushes.hpp"
#include "worker/service/parameters/values/staged_pushes.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the object, which outlives the server's stop().
class ParameterPushes {
 public:
  explicit ParameterPushes(ParameterTools tools) : tools_(tools), staged_(tools.pool, tools.helper), rows_(tools) {}
  // Call it before the server's stop().
  boost::asio::awaitable<void> stop() { return rows_.stop(); }

  // pulls: the answer carries the parameter's new values.
  boost::asio::awaitable<http::Response> push(http::Request const& request, http::Body& body, parameters::PushKind kind,
                                              bool pulls);
  void let_go(http::TimePoint now) { staged_.let_go(now); }

 private:
  using Answering = boost::asio::awaitable<http::Response>;

  Answering push_to(http::Request const& request, http::Body& body, parameters::PushKind kind, bool pulls,
                    ParameterTarget target);
  Answering push_piece(http::Request const& request, http::Body& body, parameters::PushKind kind,
                       ParameterTarget target, std::uint64_t offset);
  Answering push_here(ParameterTarget target, parameters::Push push, bool pulls);
  Answering push_everywhere(ParameterTarget target, parameters::Push push, bool pulls);

  ParameterTools const tools_;
  StagedPushes staged_;
  RowPushes rows_;
};

}  // namespace chorus::service
