#include "worker/api/core/group_requests.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "collectives/core/nearest_name.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/json/json.hpp"
#include "worker/api/errc.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/service/requests/identity.hpp"

namespace chorus::embedded {
namespace {

using http::ProblemCode;

Error impossible(std::string text) { return {WorkerErrc::bad_argument, std::move(text)}; }

std::string const& order_of(GroupOptions const& options) {
  static std::string const listed = "listed", locality = "locality";
  if (!options.order.empty()) return options.order;
  return options.workers.empty() ? locality : listed;
}

// Workers that have not joined yet, or do not answer at the moment.
bool may_change(ProblemCode code) {
  constexpr std::array may{ProblemCode::unknown_worker, ProblemCode::not_enough_workers,
                           ProblemCode::worker_unreachable, ProblemCode::epoch_fenced};
  return http::kind(code).retryable || std::find(may.begin(), may.end(), code) != may.end();
}

std::error_code error_of(ProblemCode code) {
  if (code == ProblemCode::unauthorized || code == ProblemCode::forbidden) return engine::EngineErrc::forbidden;
  auto const status = http::kind(code).status;
  bool const is_wrong = !may_change(code) && (status == 400 || status == 422);
  return is_wrong ? WorkerErrc::bad_argument : WorkerErrc::not_assigned;
}

}  // namespace

Status check_name(std::string const& group) {
  if (service::is_valid_worker_id(group)) return ok();
  return impossible("'" + group.substr(0, 80) + "' is no name of a group: 1 to 64 letters, digits and ._-");
}

Status check_group(std::string const& name, GroupOptions const& options, std::string const& self) {
  constexpr std::array<std::string_view, 3> orders{"listed", "locality", "measured"};
  if (auto status = check_name(name); status.has_error()) return status;
  if (options.workers.empty() == (options.size == 0))
    return impossible("exactly one of the ids of workers and a size is expected for group " + name);
  auto const& order = order_of(options);
  if (std::find(orders.begin(), orders.end(), order) == orders.end())
    return impossible(unknown_name("order", order, orders));
  if (options.workers.empty())
    return order == "listed" ? Status(impossible("a group of any " + std::to_string(options.size) +
                                                 " workers has no listed order: it needs their ids"))
                             : ok();
  std::set<std::string_view> seen;
  for (auto const& id : options.workers) {
    if (!service::is_valid_worker_id(id)) return impossible("'" + id.substr(0, 80) + "' is no id of a worker");
    if (!seen.insert(id).second) return impossible("worker '" + id + "' is listed twice for group " + name);
  }
  if (!seen.contains(self)) return impossible("this worker, '" + self + "', is not among those of group " + name);
  return ok();
}

http::Call to_make(std::string const& coordinator, std::string const& name, GroupOptions const& options,
                   std::string key) {
  ::chorus::api::GroupRequest request;
  if (options.workers.empty())
    request.size = options.size;
  else
    request.workers = options.workers;
  request.order = order_of(options);
  http::Call call;
  call.method = http::Method::put;
  call.url = coordinator + "/v1/groups/" + name;
  call.body = http::encode(request);
  call.fields.set("Idempotency-Key", std::move(key));
  return call;
}

http::Call to_delete(std::string const& coordinator, std::string const& name) {
  http::Call call;
  call.method = http::Method::delete_;
  call.url = coordinator + "/v1/groups/" + name;
  return call;
}

boost::asio::awaitable<Attempt> attempt(http::Client* client, http::Call call,
                                        std::chrono::steady_clock::time_point deadline) {
  Attempt attempt;
  auto answer = co_await client->send(std::move(call), deadline);
  if (!answer) {
    attempt.failure = Error(WorkerErrc::no_coordinator, answer.error().detail);
    attempt.may_succeed_later = true;
    co_return attempt;
  }
  if (answer->ok()) {
    attempt.body = std::move(answer->body);
    co_return attempt;
  }
  auto const problem = answer->problem();
  if (problem.code == ProblemCode::unknown_group) co_return attempt;  // there is nothing to delete
  attempt.failure = Error(error_of(problem.code), problem.detail);
  attempt.may_succeed_later = may_change(problem.code);
  co_return attempt;
}

}  // namespace chorus::embedded
