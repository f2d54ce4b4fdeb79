// Target of a request about a parameter: a shard on this worker, or all workers that have one.
#pragma once

#include "worker/parameters/serving/access/access.hpp"
#include "worker/parameters/serving/shard_book.hpp"
#include "worker/service/parameters/requests/parameter_request.hpp"

namespace chorus::service {

struct ParameterTarget {
  std::shared_ptr<parameters::ShardHost> host;
  parameters::PlacementPtr placement;  // if there is no host
  http::TimePoint deadline;
  [[nodiscard]] PushTarget push_target() const;
  [[nodiscard]] parameters::RowRange rows() const;
  [[nodiscard]] Dtype dtype() const;
  [[nodiscard]] bool is_lazy() const;
};

// Used on the control thread only. The arguments outlive the object.
class ParameterTargets {
 public:
  ParameterTargets(parameters::ShardBook& book, parameters::Access& access) : book_(book), access_(access) {}

  // Problems: those of parameter_name, deadline_of, ShardBook::find and Access::placement.
  boost::asio::awaitable<http::Checked<ParameterTarget>> find(http::Request const& request);
  // True for a problem that a request with a body may have because the placement is of a former parameter.
  [[nodiscard]] static bool may_be_of_former(http::ProblemCode problem) {
    return problem == http::ProblemCode::unsupported || http::kind(problem).status / 100 == 4;
  }
  // After a problem with the request: whether the reason is that the placement is of a parameter that was deleted
  // since. Then problem unavailable, and the next request finds the present one. The coordinator is asked only after a
  // problem that another parameter of the name would not have.
  boost::asio::awaitable<std::optional<http::Problem>> made_anew(parameters::PlacementPtr placement,
                                                                 http::ProblemCode problem, http::TimePoint deadline);
  // Returns the coordinator's placement; if the coordinator does not answer in a moment, the one that is known here.
  boost::asio::awaitable<http::Checked<parameters::PlacementPtr>> newest(std::string name, http::TimePoint deadline);
  // The shard has moved away: changes the target to all workers that have one.
  boost::asio::awaitable<std::optional<http::Problem>> move_on(ParameterTarget& target);

 private:
  parameters::ShardBook& book_;
  parameters::Access& access_;
};

}  // namespace chorus::service
