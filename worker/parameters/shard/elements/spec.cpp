#include "worker/parameters/shard/elements/spec.hpp"

#include "collectives/core/nearest_name.hpp"

namespace chorus::parameters {
namespace {

http::Problem invalid(std::string pointer, std::string detail) {
  http::Problem problem(http::ProblemCode::invalid_field, pointer + " " + detail);
  problem.errors.push_back({std::move(pointer), std::move(detail)});
  return problem;
}

std::optional<NonFinite> parse_nonfinite(std::string_view text) {
  if (text == "accept") return NonFinite::accept;
  if (text == "reject") return NonFinite::reject;
  if (text == "zero") return NonFinite::zero;
  return std::nullopt;
}

// Returns the elements per row: the product of all dimensions except the first. Nothing above 2^63.
std::optional<std::uint64_t> row_elements_of(std::vector<std::uint64_t> const& shape) {
  constexpr auto most = std::uint64_t{1} << 63;
  std::uint64_t product = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) {
    if (shape[i] != 0 && product > most / shape[i]) return std::nullopt;
    product *= shape[i];
  }
  return product;
}

}  // namespace

http::Checked<ShardSpec> ShardSpec::from(api::ShardAssignment const& assignment) {
  auto const& parameter = assignment.parameter;
  ShardSpec spec;
  if (!api::is_parameter_name(parameter.name)) return invalid("/parameter/name", "is no name");
  spec.parameter = parameter.name;
  spec.uid = parameter.uid.value_or("");
  spec.index = assignment.shard;
  auto const dtype = parse_dtype(parameter.dtype);
  if (!dtype) return invalid("/parameter/dtype", unknown_name("dtype", parameter.dtype, names_of(all_dtypes)));
  spec.dtype = *dtype;
  auto const row = row_elements_of(parameter.shape);
  auto const rows = parameter.shape.empty() ? 1 : parameter.shape.front();
  auto const most = (std::uint64_t{1} << 62) / element_bytes(*dtype);
  if (!row || (*row != 0 && rows > most / *row)) return invalid("/parameter/shape", "has too many elements");
  if (assignment.begin > assignment.end || assignment.end > rows * *row)
    return invalid("/end", "lies beyond the parameter, or before /begin");
  spec.shape = parameter.shape;
  spec.whole = rows * *row;
  spec.begin = assignment.begin;
  spec.end = assignment.end;
  spec.initial_row_elements = std::max<std::uint64_t>(*row, 1);
  // If rows have elements and a shard has none, there are more shards than rows, and other shards cut rows.
  auto const is_left_empty = spec.begin == spec.end && spec.whole > 0 && *row > 1;
  auto const cuts_rows = *row == 0 || spec.begin % *row != 0 || spec.end % *row != 0 || is_left_empty;
  spec.row_elements = cuts_rows ? 0 : *row;
  if (parameter.staleness < -1) return invalid("/parameter/staleness", "is below -1");
  spec.staleness = parameter.staleness;
  if (parameter.reduce != "sum" && parameter.reduce != "avg")
    return invalid("/parameter/reduce", unknown_name("reduce", parameter.reduce, {"sum", "avg"}));
  spec.averages = parameter.reduce == "avg";
  auto const nonfinite = parse_nonfinite(parameter.nonfinite);
  if (!nonfinite)
    return invalid("/parameter/nonfinite",
                   unknown_name("nonfinite", parameter.nonfinite, {"accept", "reject", "zero"}));
  spec.nonfinite = *nonfinite;
  auto optimizer = api::complete(parameter.optimizer, "/parameter/optimizer");
  if (!optimizer) return optimizer.error();
  spec.optimizer = std::move(*optimizer);
  auto initializer = api::complete(parameter.initializer, "/parameter/initializer");
  if (!initializer) return initializer.error();
  spec.initializer = std::move(*initializer);
  if (spec.staleness >= 0 && parameter.clients.empty())
    return invalid("/parameter/clients", "is empty, and clocks count");
  if (parameter.durability != "none" && parameter.durability != "log")
    return invalid("/parameter/durability", unknown_name("durability", parameter.durability, {"none", "log"}));
  spec.is_logged = parameter.durability == "log";
  if (parameter.device != "cpu" && parameter.device != "cuda")
    return invalid("/parameter/device", unknown_name("device", parameter.device, {"cpu", "cuda"}));
  spec.on_gpu = parameter.device == "cuda";
  if (spec.on_gpu && parameter.lazy_rows) return invalid("/parameter/lazy_rows", "and rows on a GPU all exist");
  spec.clients = parameter.clients;
  if (parameter.lazy_rows && spec.row_elements == 0) return invalid("/parameter/lazy_rows", "and the shard cuts rows");
  spec.lazy_rows = parameter.lazy_rows;
  if (spec.lazy_rows) *spec.lazy_rows = std::min(*spec.lazy_rows, spec.elements() / spec.row_elements);
  return spec;
}

}  // namespace chorus::parameters
