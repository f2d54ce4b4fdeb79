#include "worker/service/parameters/requests/parameter_target.hpp"

#include <algorithm>

namespace chorus::service {

using boost::asio::awaitable;
using http::Checked;
using http::ProblemCode;

namespace {

// Time for the coordinator to say what a worker could do without.
http::TimePoint in_a_moment(http::TimePoint deadline) {
  return std::min(deadline, std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

// Problems of the request alone, whatever the parameter is.
bool is_of_request(ProblemCode code) {
  return code == ProblemCode::bad_request || code == ProblemCode::length_required ||
         code == ProblemCode::precondition_failed || code == ProblemCode::unsupported_media_type ||
         code == ProblemCode::digest_mismatch || code == ProblemCode::request_timeout;
}

}  // namespace

PushTarget ParameterTarget::push_target() const {
  if (host) return {host->spec().dtype, host->spec().elements(), host->spec().row_elements};
  return {placement->dtype, placement->elements, placement->row_elements};
}

parameters::RowRange ParameterTarget::rows() const {
  if (host) return host->spec().rows();
  return {0, placement->elements / std::max<std::uint64_t>(placement->row_elements, 1)};
}

bool ParameterTarget::is_lazy() const {
  return host ? host->spec().lazy_rows.has_value() : placement->parameter.lazy_rows.has_value();
}

Dtype ParameterTarget::dtype() const { return host ? host->spec().dtype : placement->dtype; }

awaitable<Checked<ParameterTarget>> ParameterTargets::find(http::Request const& request) {
  ParameterTarget target;
  auto const name = parameter_name(request);
  if (!name) co_return name.error();
  auto const deadline = deadline_of(request, std::chrono::steady_clock::now());
  if (!deadline) co_return deadline.error();
  target.deadline = *deadline;
  auto const shard = request.query_number("shard", UINT32_MAX);
  if (!shard) co_return shard.error();
  auto const host = book_.find(*name, static_cast<std::uint32_t>(shard->value_or(0)));
  if (*shard) {
    if (!host) co_return host.error();
    auto const uid = request.fields.find(parameters::uid_field);
    if (uid && !(*host)->spec().uid.empty() && *uid != (*host)->spec().uid)
      co_return http::Problem(ProblemCode::misdirected,
                              "the shard here is of another parameter of this name, which was deleted and made anew");
    target.host = *host;
    co_return target;
  }
  // The whole parameter is here: no other worker is needed.
  if (host && (*host)->spec().is_whole() && (*host)->role() == parameters::ShardHost::Role::owner) {
    target.host = *host;
    co_return target;
  }
  auto placement = co_await access_.placement(*name, *deadline);
  if (!placement) co_return placement.error();
  target.placement = std::move(*placement);
  co_return target;
}

awaitable<std::optional<http::Problem>> ParameterTargets::made_anew(parameters::PlacementPtr placement,
                                                                    ProblemCode problem, http::TimePoint deadline) {
  if (is_of_request(problem)) co_return std::nullopt;
  auto const now = co_await access_.directory().fetch(placement->parameter.name, "", in_a_moment(deadline));
  if (now && !(*now)->is_of_same(*placement)) co_return parameters::made_anew(placement->parameter.name);
  if (!now && now.error().code == ProblemCode::unknown_parameter) co_return now.error();
  co_return std::nullopt;
}

awaitable<Checked<parameters::PlacementPtr>> ParameterTargets::newest(std::string name, http::TimePoint deadline) {
  auto placement = co_await access_.directory().fetch(name, "", in_a_moment(deadline));
  if (!placement && placement.error().code == ProblemCode::unavailable)
    placement = co_await access_.placement(std::move(name), deadline);
  co_return placement;
}

awaitable<std::optional<http::Problem>> ParameterTargets::move_on(ParameterTarget& target) {
  auto placement = co_await access_.placement(target.host->spec().parameter, target.deadline);
  if (!placement) co_return placement.error();
  target.host = nullptr;
  target.placement = std::move(*placement);
  co_return std::nullopt;
}

}  // namespace chorus::service
