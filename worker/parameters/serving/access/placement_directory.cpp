#include "worker/parameters/serving/access/placement_directory.hpp"

#include <utility>

#include "http/json/json.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;

constexpr std::size_t most_known = 65536;

std::string without_trailing_slash(std::string url) {
  while (url.ends_with('/')) url.pop_back();
  return url;
}

// Coordinators that redirect to each other will have a leader in a moment.
Problem without_leader_is_unavailable(Problem problem) {
  if (problem.code != ProblemCode::not_leader) return problem;
  Problem unavailable(ProblemCode::unavailable, "no coordinator leads at present: " + problem.detail);
  unavailable.retry_after_s = problem.retry_after_s;
  return unavailable;
}

}  // namespace

PlacementDirectory::PlacementDirectory(http::Client& client, std::string coordinator)
    : client_(client), coordinator_(without_trailing_slash(std::move(coordinator))) {}

asio::awaitable<http::Checked<PlacementPtr>> PlacementDirectory::placement(std::string name, http::TimePoint deadline) {
  if (auto const found = known_.find(name); found != known_.end()) co_return found->second;
  co_return co_await fetch(std::move(name), "", deadline);
}

asio::awaitable<http::Checked<PlacementPtr>> PlacementDirectory::fetch(std::string name, std::string query,
                                                                       http::TimePoint deadline) {
  if (coordinator_.empty())
    co_return Problem(ProblemCode::unavailable, "this worker has no coordinator, which places parameters");
  http::Call call;
  call.url = coordinator_ + api::parameter_path(name) + query;
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (!answer) co_return Problem(ProblemCode::unavailable, "the coordinator does not answer: " + answer.error().detail);
  if (!answer->ok()) co_return without_leader_is_unavailable(answer->problem());
  auto parameter = http::decode<api::Parameter>(answer->body, http::UnknownFields::ignore);
  if (!parameter) co_return parameter.error();
  auto placed = Placement::from(std::move(*parameter));
  if (!placed) co_return placed.error();
  if (known_.size() >= most_known) known_.clear();
  // A missing owner may return at any moment, so the next call asks again.
  if ((*placed)->parameter.state == "unavailable")
    known_.erase(name);
  else
    known_[name] = *placed;
  co_return *placed;
}

asio::awaitable<void> PlacementDirectory::suspect(std::string worker, std::string incarnation,
                                                  http::TimePoint deadline) {
  http::Call call;
  call.url = coordinator_ + "/v1/parameters?limit=1&suspect=" + worker + "&incarnation=" + incarnation;
  if (!coordinator_.empty()) (void)co_await client_.send(std::move(call), deadline);
}

asio::awaitable<bool> PlacementDirectory::report_loss(std::string parameter, std::uint32_t shard, std::string worker,
                                                      std::string incarnation, http::TimePoint deadline) {
  if (coordinator_.empty()) co_return true;
  http::Call call;
  call.url = coordinator_ + api::parameter_path(parameter) + "?lost_shard=" + std::to_string(shard) +
             "&suspect=" + worker + "&incarnation=" + incarnation;
  auto const answer = co_await client_.send(std::move(call), deadline);
  co_return answer && (answer->ok() || answer->problem().code == ProblemCode::unknown_parameter);
}

}  // namespace chorus::parameters
