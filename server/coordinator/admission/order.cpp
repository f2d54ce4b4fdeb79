#include "server/coordinator/admission/order.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/error_feedback.hpp"
#include "collectives/core/nearest_name.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "http/api/collectives/timeout.hpp"
#include "server/coordinator/groups/groups.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

constexpr std::uint64_t least_segment_bytes = 4096;
constexpr std::uint64_t most_segment_bytes = std::uint64_t{64} << 20;
constexpr std::uint32_t most_window = 64;

std::vector<std::string_view> names_of_algorithms() {
  std::vector<std::string_view> names{"auto"};
  for (auto const* algorithm : algorithms::all()) names.push_back(algorithm->name);
  return names;
}

std::optional<http::Problem> check_schedule(api::Schedule const& schedule) {
  if (auto const segment = schedule.segment_bytes;
      segment && (*segment < least_segment_bytes || *segment > most_segment_bytes))
    return invalid_field("/schedule/segment_bytes", std::to_string(*segment) + "; expected 4096 to 67108864");
  if (schedule.window < 1 || schedule.window > most_window)
    return invalid_field("/schedule/window", std::to_string(schedule.window) + "; expected 1 to 64");
  return std::nullopt;
}

bool in_worker_order(Op op, std::string_view algorithm) {
  auto const found = algorithms::find(algorithm);
  if (found.has_error() || found.value()->in_worker_order == nullptr) return false;
  return found.value()->in_worker_order({.op = op, .algorithm = std::string(algorithm), .ranks = 4});
}

std::string names_in_worker_order(Op op) {
  std::string names;
  for (auto const* algorithm : algorithms::all_for(op))
    if (in_worker_order(op, algorithm->name)) names.append(names.empty() ? "" : ", ").append(algorithm->name);
  return names;
}

std::string names_for(Op op) {
  std::string names;
  for (auto const* algorithm : algorithms::all_for(op)) names.append(names.empty() ? "" : ", ").append(algorithm->name);
  return names;
}

std::optional<http::Problem> check_local_algorithm(api::CollectiveRequest const& request) {
  auto const op = parse_op(request.op);
  if (request.local_algorithm == "auto" || !op) return std::nullopt;
  auto const needed = reduces(*op) ? Op::reduce : Op::broadcast;
  if (algorithms::find(request.local_algorithm).has_error())
    return invalid_field("/local_algorithm", unknown_name("algorithm", request.local_algorithm, names_of_algorithms()));
  auto const able = algorithms::all_for(needed);
  if (std::ranges::find(able, request.local_algorithm, &plan::Algorithm::name) == able.end())
    return invalid_field("/local_algorithm", coordinator::quoted(request.local_algorithm) +
                                                 " is none for this; auto, " + names_for(needed) + " are");
  // The tensors of a worker are summed before those of the workers, so their order matters as well.
  if (request.reproducible && needed == Op::reduce && !in_worker_order(needed, request.local_algorithm))
    return invalid_field("/local_algorithm", request.local_algorithm +
                                                 " does not reduce a worker's tensors in one place in their order, as "
                                                 "reproducible asks for; auto, " +
                                                 names_in_worker_order(needed) + " do");
  return std::nullopt;
}

}  // namespace

bool is_tensor_name(std::string_view name) {
  if (name.empty() || name.size() > 255) return false;
  auto const known = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("._~/-").find(c) != std::string_view::npos;
  };
  if (!std::ranges::all_of(name, known)) return false;
  while (true) {
    auto const part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (part.size() == name.size()) return true;
    name.remove_prefix(part.size() + 1);
  }
}

http::Checked<std::optional<CompressionWish>> check_compression(std::optional<api::Compression> const& compression,
                                                                std::string const& op, ReduceOp reduce,
                                                                std::string const& algorithm) {
  if (!compression) return std::optional<CompressionWish>();
  auto const wished = parse_compression(compression->format, compression->between, compression->allow);
  if (!wished) return invalid_field("/compression", wished.error().detail);
  auto const known = parse_op(op);
  if (!known) return std::optional(*wished);  // check_wish() refuses it
  if (!can_be_compressed(*known)) return invalid_field("/compression", plan::has_no_codes(*known));
  if (!reduces(*known)) return std::optional(*wished);
  if (!plan::has_bound(reduce)) return invalid_field("/compression", plan::has_no_bound(reduce));
  bool const is_named = algorithm != "auto" && algorithms::find(algorithm).has_value();
  if (is_named && !wished->between() && !in_worker_order(*known, algorithm))
    return invalid_field("/compression", algorithm +
                                             " does not reduce every element in one place in the order of the " +
                                             "workers; " + names_in_worker_order(*known) + " do");
  return std::optional(*wished);
}

std::optional<http::Problem> check_format(std::optional<CompressionWish> const& compression, Dtype dtype) {
  auto const fixed = compression ? compression->fixed() : std::nullopt;
  if (!fixed || plan::has_codes(dtype, *fixed)) return std::nullopt;
  return invalid_field("/compression", std::string(name(dtype)) + " has no codes of " + to_string(*fixed) + "; " +
                                           std::string(plan::formats_of(*fixed)));
}

http::Checked<model::Wish> check_wish(WishText const& text) {
  auto const op = parse_op(text.op);
  if (!op) return invalid_field("/op", unknown_name("operation", text.op, names_of(all_ops)));
  if (text.algorithm != "auto") {
    if (algorithms::find(text.algorithm).has_error())
      return invalid_field("/algorithm", unknown_name("algorithm", text.algorithm, names_of_algorithms()));
    auto const able = algorithms::all_for(*op);
    if (std::ranges::find(able, text.algorithm, &plan::Algorithm::name) == able.end())
      return invalid_field("/algorithm", text.algorithm + " does not do " + text.op + "; " + names_for(*op) + " do");
  }
  if (text.reproducible && reduces(*op) && text.algorithm != "auto" && !in_worker_order(*op, text.algorithm))
    return invalid_field("/reproducible", text.algorithm + " does not reduce every element in one place in the order " +
                                              "of the workers; " + names_in_worker_order(*op) + " do");
  if (text.arity && *text.arity == 0) return invalid_field("/arity", "0; a tree has at least one child per node");
  if (text.arity && text.algorithm != "auto") {
    // Without a shape, which is optional in every algorithm, only the arity can be refused.
    plan::Spec const spec{.op = *op, .algorithm = text.algorithm, .ranks = 2, .arity = *text.arity};
    auto const status = algorithms::find(text.algorithm).value()->check(spec);
    if (status.has_error()) return invalid_field("/arity", status.error().detail);
  }
  if (text.shape && text.algorithm == "auto")
    return invalid_field("/algorithm_shape", "a shape belongs to an algorithm; name it");
  if (text.shape && text.shape->size() > plan::max_shape)
    return invalid_field("/algorithm_shape", std::to_string(text.shape->size()) + " numbers; expected at most " +
                                                 std::to_string(plan::max_shape));
  bool const is_between = text.compression && text.compression->between();
  if (is_between && text.reproducible)
    return invalid_field("/compression",
                         "codes between groups give other bits for other groups, and are not reproducible; codes of "
                         "all messages are");
  if (is_between && text.shape)
    return invalid_field("/algorithm_shape", "is that of the groups between which messages are codes; leave it out");
  model::Wish wish;
  wish.op = *op;
  wish.algorithm = text.algorithm;
  wish.root = text.root;
  wish.arity = text.arity;
  wish.shape = text.shape;
  wish.reproducible = text.reproducible;
  if (text.compression && !text.compression->is_automatic())
    return model::wish_for(std::move(wish), text.compression->fixed());
  return wish;
}

std::optional<http::Problem> check_root(std::optional<std::uint32_t> root, std::size_t ranks) {
  if (!root || *root < ranks) return std::nullopt;
  return invalid_field("/root", "rank " + std::to_string(*root) + " in a group of " + std::to_string(ranks) +
                                    "; expected 0 to " + std::to_string(ranks - 1));
}

std::optional<http::Problem> check_shape(model::Wish const& wish, std::size_t ranks) {
  if (!wish.shape) return std::nullopt;
  auto const algorithm = algorithms::find(wish.algorithm);
  if (algorithm.has_error()) return std::nullopt;
  plan::Spec spec{.op = wish.op, .algorithm = wish.algorithm, .ranks = static_cast<std::uint32_t>(ranks)};
  spec.arity = wish.arity.value_or(2);
  spec.shape = *wish.shape;
  auto const status = algorithm.value()->check(spec);
  if (status.has_value()) return std::nullopt;
  return invalid_field("/algorithm_shape", status.error().detail);
}

http::Checked<Order> check_order(api::CollectiveRequest const& request) {
  if (!is_identifier(request.group)) return not_an_identifier("group", request.group, "/group");
  bool const is_barrier = request.op == name(Op::barrier);
  if (is_barrier && !request.tensor.empty()) return invalid_field("/tensor", "a barrier has none");
  if (!is_barrier && request.tensor.empty())
    return invalid_field("/tensor", "missing; expected the name of a tensor of every rank");
  if (!is_barrier && !is_tensor_name(request.tensor))
    return invalid_field("/tensor", "the tensor name " + coordinator::quoted(request.tensor) +
                                        " is not 1 to 255 letters, digits and ._~/- in non-empty parts");
  if (request.output && (is_barrier || !is_tensor_name(*request.output)))
    return invalid_field(
        "/output", is_barrier ? "a barrier has none" : coordinator::quoted(*request.output) + " is no tensor name");
  auto const reduce = parse_reduce_op(request.reduce);
  if (!reduce) return invalid_field("/reduce", unknown_name("reduction", request.reduce, names_of(all_reduce_ops)));
  if (request.on_failure && *request.on_failure != "fail" && *request.on_failure != "shrink")
    return invalid_field("/on_failure", unknown_name("on_failure", *request.on_failure, {"fail", "shrink"}));
  if (request.timeout_ms && (*request.timeout_ms == 0 || *request.timeout_ms > api::longest_timeout_ms))
    return invalid_field("/timeout_ms", std::to_string(*request.timeout_ms) + "; expected 1 to " +
                                            std::to_string(api::longest_timeout_ms));
  if (auto problem = check_schedule(request.schedule)) return std::move(*problem);
  if (auto problem = check_local_algorithm(request)) return std::move(*problem);
  auto const compression = check_compression(request.compression, request.op, *reduce, request.algorithm);
  if (compression.has_error()) return compression.error();
  if (request.error_feedback.value_or(false))
    if (auto const able = check_error_feedback(compression.value(), false); able.has_error())
      return invalid_field("/error_feedback", able.error().detail);
  auto wish = check_wish({request.op, request.algorithm, request.root, request.arity, request.algorithm_shape,
                          request.reproducible, compression.value()});
  if (wish.has_error()) return wish.error();
  wish.value().in_place = request.in_place;
  return Order{*reduce, std::move(wish.value()), compression.value()};
}

AdmissionQuestion admission_question(api::CollectiveRequest const& request, Order const& order) {
  return {order.wish.op,
          request.tensor,
          request.output,
          request.root.value_or(0),
          request.counts.value_or(std::vector<std::uint64_t>()),
          order.reduce,
          request.in_place};
}

std::optional<http::Problem> check_order_for(api::CollectiveRequest const& request, Order const& order,
                                             api::Group const& group) {
  if (request.epoch && *request.epoch != group.epoch) {
    auto const detail = "epoch " + std::to_string(*request.epoch) + " was asked for and group '" + group.name +
                        "' stands at epoch " + std::to_string(group.epoch);
    http::Problem problem(http::ProblemCode::epoch_fenced, detail);
    problem.errors.push_back({"/epoch", detail});
    return problem;
  }
  if (request.on_failure == "shrink" && !may_shrink(group.requested))
    return invalid_field("/on_failure", "is 'shrink', and group '" + group.name + "' was PUT with on_failure 'fail'");
  if (auto problem = check_root(request.root, group.members.size())) return problem;
  return check_shape(order.wish, group.members.size());
}

std::vector<std::string> lock_keys(api::Group const& group, api::CollectiveRequest const& request) {
  std::vector<std::string> keys;
  for (auto const& member : group.members) {
    if (!request.tensor.empty()) keys.push_back("tensor:" + member.worker + "/" + request.tensor);
    if (request.output && *request.output != request.tensor)
      keys.push_back("tensor:" + member.worker + "/" + *request.output);
  }
  return keys;
}

}  // namespace chorus::coordinator
