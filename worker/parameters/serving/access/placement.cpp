#include "worker/parameters/serving/access/placement.hpp"

#include <algorithm>

namespace chorus::parameters {

bool Placement::has_whole_rows() const {
  auto const begins_with_row = [this](auto const& owner) { return owner.elements[0] % row_elements == 0; };
  return row_elements > 0 && std::ranges::all_of(owners, begins_with_row);
}

bool Placement::is_of_same(Placement const& other) const {
  auto const& mine = parameter.uid;
  auto const& its = other.parameter.uid;
  return mine && its ? mine == its : dtype == other.dtype && parameter.shape == other.parameter.shape;
}

std::optional<http::Problem> Placement::refuse_rows() const {
  if (has_whole_rows()) return std::nullopt;
  auto const why = row_elements == 0 ? "have no elements" : "are cut by its shards";
  return http::Problem(http::ProblemCode::unsupported,
                       "the rows of " + parameter.name + " " + why + ": push and pull all elements");
}

http::Problem made_anew(std::string const& name) {
  http::Problem problem(http::ProblemCode::unavailable, name + " was deleted and made anew meanwhile: ask again");
  problem.retry_after_s = 0;
  return problem;
}

http::Checked<PlacementPtr> Placement::from(api::Parameter parameter) {
  auto const broken = [&](std::string const& why) {
    return http::Problem(http::ProblemCode::internal, "the placement of " + parameter.name + " " + why);
  };
  auto placement = std::make_shared<Placement>();
  auto const dtype = parse_dtype(parameter.dtype);
  if (!dtype) return broken("has no dtype");
  placement->dtype = *dtype;
  placement->elements = 1;
  for (std::size_t i = 0; i < parameter.shape.size(); ++i) {
    placement->elements *= parameter.shape[i];
    if (i > 0) placement->row_elements *= parameter.shape[i];
  }
  std::ranges::copy_if(parameter.endpoints, std::back_inserter(placement->owners),
                       [](auto const& endpoint) { return endpoint.role == "owner"; });
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < placement->owners.size(); ++i) {
    auto const& owner = placement->owners[i];
    if (owner.shard != i || owner.elements.size() != 2 || owner.elements[0] != next || owner.elements[1] < next)
      return http::Problem(
          http::ProblemCode::parameter_lost,
          parameter.name + ": " +
              parameter.why.value_or("shard " + std::to_string(i) + " of " + parameter.name + " has no owner"));
    next = owner.elements[1];
  }
  if (next != placement->elements || placement->owners.empty())
    return http::Problem(http::ProblemCode::parameter_lost,
                         parameter.name + ": " + parameter.why.value_or("a shard of it has no owner"));
  placement->parameter = std::move(parameter);
  return PlacementPtr(std::move(placement));
}

}  // namespace chorus::parameters
