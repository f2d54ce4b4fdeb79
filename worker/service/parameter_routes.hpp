// Parameters over HTTP: any worker is asked for a whole one, an owner (?shard=) for what it has.
#pragma once

#include "http/router.hpp"
#include "worker/parameters/serving/access.hpp"
#include "worker/parameters/serving/shard_book.hpp"
#include "worker/service/held_views.hpp"
#include "worker/service/parameter_gateway.hpp"
#include "worker/service/parameter_request.hpp"
#include "worker/service/staged_pushes.hpp"

namespace chorus::service {

// On the control thread. What it is given outlives it, and it outlives the server's stop().
class ParameterRoutes {
 public:
  // What an owner answers, for whoever counts.
  struct Counts {
    std::function<void()> pulled, unchanged;
  };
  ParameterRoutes(parameters::ShardBook& book, parameters::Access& access, tensors::Pool& pool, Helper& helper,
                  Counts counts)
      : book_(book),
        access_(access),
        pool_(pool),
        reader_(pool, helper),
        gateway_(access, pool),
        staged_(pool),
        counts_(std::move(counts)) {}

  void add_to(http::Router& router);

 private:
  using Answering = boost::asio::awaitable<http::Response>;

  Answering list(http::Request const& request, http::Body& body);
  Answering describe(http::Request const& request, http::Body& body);
  Answering pull(http::Request const& request, http::Body& body);
  Answering put_value(http::Request const& request, http::Body& body);
  Answering push_gradient(http::Request const& request, http::Body& body);
  Answering push_pull(http::Request const& request, http::Body& body);
  Answering pull_rows(http::Request const& request, http::Body& body);
  Answering push_rows(http::Request const& request, http::Body& body);

  // Whom a request is for: a shard that is here, or everybody who has one.
  struct Target {
    std::shared_ptr<parameters::ShardHost> host;
    parameters::PlacementPtr placement;  // without a host
    http::TimePoint deadline;
    [[nodiscard]] PushTarget push_target() const;
    [[nodiscard]] parameters::RowRange rows() const;
    [[nodiscard]] Dtype dtype() const;
    [[nodiscard]] bool is_lazy() const;
  };
  boost::asio::awaitable<http::Checked<Target>> target_of(http::Request const& request);

  Answering push(http::Request const& request, http::Body& body, parameters::PushKind kind, bool pulls);
  Answering push_piece(http::Request const& request, http::Body& body, parameters::PushKind kind, Target target,
                       std::uint64_t offset);
  Answering push_here(Target target, parameters::Push push, bool pulls);
  Answering push_everywhere(Target target, parameters::Push push, bool pulls);
  // What a request with If-Match reads: that, and nothing newer.
  [[nodiscard]] http::Checked<std::optional<parameters::ShardHost::View>> find_held(http::Request const& request,
                                                                                    parameters::ShardHost const& host);
  Answering pull_here(http::Request const& request, Target target);
  // For as long as the shard has this version here.
  [[nodiscard]] http::Again pull_again(std::shared_ptr<parameters::ShardHost> host, std::uint32_t epoch,
                                       std::uint64_t version, std::optional<http::ByteRange> sent);
  Answering pull_everywhere(http::Request const& request, Target target);

  parameters::ShardBook& book_;
  parameters::Access& access_;
  tensors::Pool& pool_;
  PushReader reader_;
  ParameterGateway gateway_;
  HeldViews held_;
  StagedPushes staged_;
  Counts const counts_;
};

}  // namespace chorus::service
