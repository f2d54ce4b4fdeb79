#include "worker/service/operands/run_order.hpp"

#include <limits>
#include <set>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/nearest_name.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "http/api/cluster/membership.hpp"
#include "worker/engine/trace/run_identity.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {
namespace {

using http::Checked;

std::string quoted(std::string const& text) { return '"' + text.substr(0, 80) + '"'; }

Checked<std::vector<engine::Peer>> check_members(std::vector<api::Peer> const& members) {
  std::vector<engine::Peer> peers;
  std::set<std::string_view> seen;  // a link belongs to one worker, so a worker can be only one rank
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto const& member = members[i];
    auto const at = [i](char const* field) { return "/members/" + std::to_string(i) + field; };
    if (member.rank != i)
      return invalid_field(at("/rank"), "is not " + std::to_string(i) + ": members come in rank order");
    if (!is_valid_worker_id(member.worker)) return invalid_field(at("/worker"), "is not a worker id");
    if (!seen.insert(member.worker).second) return invalid_field(at("/worker"), "is listed twice");
    auto const incarnation = check_hex(at("/incarnation"), member.incarnation);
    if (!incarnation) return incarnation.error();
    peers.push_back({member.rank, member.worker, *incarnation, member.url});
  }
  return peers;
}

Checked<std::optional<ResultPlace>> check_result(api::RunRequest const& request, Dtype dtype) {
  if (!request.result) return std::optional<ResultPlace>();
  auto const& result = *request.result;
  if (!tensors::is_valid_name(result.tensor)) return invalid_field("/result/tensor", "is not a tensor name");
  if (auto const count = tensors::element_count(result.shape, dtype); !count)
    return invalid_field("/result/shape", count.error().detail);
  return std::optional(ResultPlace{result.tensor, result.shape, result.version});
}

std::optional<http::Problem> check_addressee(engine::Peer const& addressee, Identity const& self) {
  if (addressee.worker == self.id && addressee.incarnation == self.incarnation) return std::nullopt;
  return http::Problem(http::ProblemCode::epoch_fenced,
                       "meant for " + addressee.worker + " of incarnation " + api::to_hex(addressee.incarnation) +
                           ", this is " + self.id + " of incarnation " + api::to_hex(self.incarnation));
}

}  // namespace

Checked<ReduceOp> check_reduce(std::string const& reduce) {
  if (auto const parsed = parse_reduce_op(reduce)) return *parsed;
  return invalid_field("/reduce", unknown_name("reduction", reduce, names_of(all_reduce_ops)));
}

Checked<std::optional<CompressionWish>> check_compression(std::optional<api::Compression> const& compression) {
  if (!compression) return std::optional<CompressionWish>();
  auto const known = parse_compression(compression->format, compression->between, compression->allow);
  if (!known) return invalid_field("/compression", known.error().detail);
  return std::optional(*known);
}

std::optional<WireFormat> format_sent(RunOrder const& order) {
  auto const algorithm = algorithms::find(order.spec.algorithm);
  return algorithm ? plan::format_sent(order.compression, **algorithm) : std::nullopt;
}

Checked<std::chrono::milliseconds> check_timeout(std::uint64_t timeout_ms) {
  if (timeout_ms >= 1 && timeout_ms <= api::longest_timeout_ms) return std::chrono::milliseconds(timeout_ms);
  return invalid_field(
      "/timeout_ms", "is " + std::to_string(timeout_ms) + ", expected 1 to " + std::to_string(api::longest_timeout_ms));
}

std::optional<http::Problem> check_schedule(api::Schedule const& schedule) {
  constexpr std::uint64_t min_segment = 4096, max_segment = 64 << 20;
  if (auto const segment = schedule.segment_bytes; segment && (*segment < min_segment || *segment > max_segment))
    return invalid_field("/schedule/segment_bytes",
                         "is " + std::to_string(*segment) + ", expected 4096 to " + std::to_string(max_segment));
  if (schedule.window < 1 || schedule.window > 64)
    return invalid_field("/schedule/window", "is " + std::to_string(schedule.window) + ", expected 1 to 64");
  return std::nullopt;
}

std::optional<http::Problem> check_contributions(std::uint64_t contributions) {
  if (contributions >= 1 && contributions <= std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return invalid_field("/contributions", "is " + std::to_string(contributions) + ", expected 1 to 2^32 - 1");
}

bool keeps_order(std::string const& local_algorithm) {
  auto const found = algorithms::find(local_algorithm);
  if (!found || (*found)->in_worker_order == nullptr) return false;
  return (*found)->in_worker_order({.op = Op::reduce, .algorithm = local_algorithm, .ranks = 4});
}

Checked<std::uint64_t> check_hex(std::string pointer, std::string const& text) {
  if (auto const value = api::from_hex(text)) return *value;
  return invalid_field(std::move(pointer), "is " + quoted(text) + ", expected 16 hexadecimal digits");
}

Checked<RunOrder> to_order(api::RunRequest const& request, Identity const& self,
                           std::chrono::steady_clock::time_point now) {
  if (engine::is_members_call(request.run))
    return invalid_field("/run", "has bit 63 set, which is for calls between members");
  auto const op = parse_op(request.op);
  if (!op) return invalid_field("/op", unknown_name("operation", request.op, names_of(all_ops)));
  auto const dtype = parse_dtype(request.dtype);
  if (!dtype) return invalid_field("/dtype", unknown_name("dtype", request.dtype, names_of(all_dtypes)));
  auto const reduce = check_reduce(request.reduce);
  if (!reduce) return reduce.error();
  auto const compression = check_compression(request.compression);
  if (!compression) return compression.error();
  if (*compression && (*compression)->is_automatic())
    return invalid_field("/compression", "is 'auto', which the coordinator decides before it orders a run");
  auto const token = check_hex("/token", request.token);
  if (!token) return token.error();
  auto const timeout = check_timeout(request.timeout_ms);
  if (!timeout) return timeout.error();
  if (auto problem = check_schedule(request.schedule)) return std::move(*problem);
  if (request.contributions > 0)
    if (auto problem = check_contributions(request.contributions)) return std::move(*problem);
  if (*op != Op::barrier && !tensors::is_valid_name(request.tensor))
    return invalid_field("/tensor", "is not a tensor name");
  auto result = check_result(request, *dtype);
  if (!result) return result.error();
  auto members = check_members(request.members);
  if (!members) return members.error();
  if (request.rank >= members->size())
    return invalid_field("/rank",
                         "is " + std::to_string(request.rank) + " of " + std::to_string(members->size()) + " members");
  if (auto problem = check_addressee((*members)[request.rank], self)) return std::move(*problem);

  RunOrder order;
  order.run = request.run;
  order.group = request.group;
  order.epoch = request.epoch;
  order.token = *token;
  order.spec = {*op,
                request.algorithm,
                static_cast<std::uint32_t>(members->size()),
                request.root,
                request.arity,
                request.in_place,
                request.algorithm_shape,
                request.by_position.value_or(std::vector<plan::Rank>())};
  order.rank = request.rank;
  order.members = std::move(*members);
  order.tensor = request.tensor;
  order.admitted = Admitted{request.version, *dtype};
  order.sizes = {request.counts.empty() ? request.elements : 0, request.counts, request.receive_counts};
  order.result = std::move(*result);
  order.parts = request.parts;
  order.local_algorithm = request.local_algorithm;
  order.any_order = !keeps_order(request.local_algorithm);
  order.contributions = request.contributions;
  order.reduce = *reduce;
  if (*compression) order.compression = (*compression)->fixed();
  order.error_feedback = request.error_feedback.value_or(false);
  order.digests = request.digests;
  order.schedule = request.schedule;
  order.deadline = now + *timeout;
  return order;
}

}  // namespace chorus::service
