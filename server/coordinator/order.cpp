#include "server/coordinator/order.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "server/coordinator/identifier.hpp"

namespace chorus::coordinator {
namespace {

constexpr std::uint64_t longest_timeout_ms = 3600 * 1000;
constexpr std::uint64_t least_segment_bytes = 4096;
constexpr std::uint64_t most_segment_bytes = std::uint64_t{64} << 20;
constexpr std::uint32_t most_window = 64;

http::Problem unsupported(std::string pointer, std::string detail) {
  http::Problem problem(http::ProblemCode::unsupported, detail);
  problem.errors.push_back({std::move(pointer), std::move(detail)});
  return problem;
}

std::string quoted(std::string_view text) {
  return is_showable(text, 64) ? "'" + std::string(text) + "'" : "of " + std::to_string(text.size()) + " bytes";
}

std::string names_of_algorithms() {
  std::string names = "auto";
  for (auto const* algorithm : algorithms::all()) names.append(", ").append(algorithm->name);
  return names;
}

template <class Values>
std::string names_of(Values const& values) {
  std::string names;
  for (auto value : values) names.append(names.empty() ? "" : ", ").append(name(value));
  return names;
}

std::optional<http::Problem> check_schedule(api::Schedule const& schedule) {
  if (schedule.segment_bytes < least_segment_bytes || schedule.segment_bytes > most_segment_bytes)
    return invalid_field("/schedule/segment_bytes",
                         std::to_string(schedule.segment_bytes) + "; expected 4096 to 67108864");
  if (schedule.window < 1 || schedule.window > most_window)
    return invalid_field("/schedule/window", std::to_string(schedule.window) + "; expected 1 to 64");
  return std::nullopt;
}

// Any fixed plan gives the same bits each time; only a fixed root also gives them for every size and placement.
std::optional<http::Problem> make_reproducible(model::Wish& wish) {
  if (wish.algorithm != "auto" && wish.algorithm != "centralized")
    return unsupported("/reproducible",
                       "reproducible results exist for the algorithm centralized only, not for " + wish.algorithm);
  wish.algorithm = "centralized";
  if (!wish.root) wish.root = 0;
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

http::Checked<model::Wish> check_wish(std::string_view op, std::string const& algorithm,
                                      std::optional<std::uint32_t> root, std::optional<std::uint32_t> arity) {
  auto const parsed = parse_op(op);
  if (!parsed) return invalid_field("/op", "unknown operation " + quoted(op) + "; there are " + names_of(all_ops));
  if (*parsed != Op::all_reduce) return unsupported("/op", std::string(op) + " is not in this release; all_reduce is");
  if (algorithm != "auto" && algorithms::find(algorithm).has_error())
    return invalid_field("/algorithm",
                         "unknown algorithm " + quoted(algorithm) + "; there are " + names_of_algorithms());
  if (arity && *arity == 0) return invalid_field("/arity", "0; a tree has at least one child per node");
  model::Wish wish;
  wish.op = *parsed;
  wish.algorithm = algorithm;
  wish.root = root;
  wish.arity = arity;
  return wish;
}

std::optional<http::Problem> check_root(std::optional<std::uint32_t> root, std::size_t ranks) {
  if (!root || *root < ranks) return std::nullopt;
  return invalid_field("/root", "rank " + std::to_string(*root) + " in a group of " + std::to_string(ranks));
}

http::Checked<Order> check_order(api::CollectiveRequest const& request) {
  if (!is_identifier(request.group)) return not_an_identifier("group", request.group, "/group");
  if (!is_tensor_name(request.tensor))
    return invalid_field("/tensor", "the tensor name " + quoted(request.tensor) +
                                        " is not 1 to 255 letters, digits and ._~/- in non-empty parts");
  auto const reduce = parse_reduce_op(request.reduce);
  if (!reduce)
    return invalid_field("/reduce",
                         "unknown reduction " + quoted(request.reduce) + "; there are " + names_of(all_reduce_ops));
  if (request.timeout_ms == 0 || request.timeout_ms > longest_timeout_ms)
    return invalid_field("/timeout_ms", std::to_string(request.timeout_ms) + "; expected 1 to 3600000");
  if (auto problem = check_schedule(request.schedule)) return std::move(*problem);
  auto wish = check_wish(request.op, request.algorithm, request.root, request.arity);
  if (wish.has_error()) return wish.error();
  wish.value().in_place = request.in_place;
  if (request.reproducible)
    if (auto problem = make_reproducible(wish.value())) return std::move(*problem);
  return Order{*reduce, std::move(wish.value())};
}

std::optional<http::Problem> check_order_for(api::CollectiveRequest const& request, api::Group const& group) {
  if (request.epoch && *request.epoch != group.epoch) {
    auto const detail = "epoch " + std::to_string(*request.epoch) + " was asked for and group '" + group.name +
                        "' stands at epoch " + std::to_string(group.epoch);
    http::Problem problem(http::ProblemCode::epoch_fenced, detail);
    problem.errors.push_back({"/epoch", detail});
    return problem;
  }
  return check_root(request.root, group.members.size());
}

}  // namespace chorus::coordinator
