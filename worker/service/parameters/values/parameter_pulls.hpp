// Reads of parameters: whole values, ranges and rows.
#pragma once

#include "worker/service/parameters/requests/parameter_tools.hpp"
#include "worker/service/parameters/values/held_views.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the object, which outlives the server's stop().
class ParameterPulls {
 public:
  explicit ParameterPulls(ParameterTools tools) : tools_(tools) {}

  boost::asio::awaitable<http::Response> pull(http::Request const& request);
  boost::asio::awaitable<http::Response> pull_rows(http::Request const& request, http::Body& body);
  void let_go(http::TimePoint now) { held_.let_go(now); }

 private:
  using Answering = boost::asio::awaitable<http::Response>;

  // The view that a request with If-Match reads: exactly these values, held or current. Empty if there is no such
  // field.
  [[nodiscard]] http::Checked<std::optional<parameters::ShardHost::View>> matched(http::Request const& request,
                                                                                  parameters::ShardHost const& host);
  // The reader has read everything that it held under If-Match.
  void release(http::Request const& request, std::string const& reader, parameters::ShardHost const& host);
  Answering pull_from(http::Request const& request, ParameterTarget target);
  Answering pull_rows_from(http::Request const& request, http::Body& body, ParameterTarget target);
  Answering pull_here(http::Request const& request, ParameterTarget target);
  // A repeated answer, valid while the shard has this version here.
  [[nodiscard]] http::Again pull_again(std::shared_ptr<parameters::ShardHost> host, std::uint32_t epoch,
                                       std::uint64_t version, std::optional<http::ByteRange> sent);
  Answering pull_everywhere(http::Request const& request, ParameterTarget target);

  ParameterTools const tools_;
  HeldViews held_;
};

}  // namespace chorus::service
