#include "server/coordinator/placements/placement.hpp"

#include <algorithm>

#include "collectives/core/dtype.hpp"
#include "collectives/core/nearest_name.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

constexpr std::size_t dimensions_max = 32;
constexpr std::uint64_t bytes_max = std::uint64_t{1} << 62;
constexpr std::uint64_t shard_bytes_min = 256 << 10;
constexpr std::uint32_t shards_max = 1024;
constexpr std::uint64_t movable_bytes_min = 8 << 20;  // minimum size of a shard that is split off for balancing
constexpr std::uint64_t movable_shards = 24;          // divisible by 1, 2, 3, 4, 6 and 8
constexpr std::uint32_t replicas_max = 2;
constexpr std::int64_t staleness_max = 1'000'000;
constexpr std::size_t clients_max = 4096;

// Product of the dimensions from `first` on; empty beyond bytes_max.
std::optional<std::uint64_t> product(std::vector<std::uint64_t> const& shape, std::size_t first) {
  std::uint64_t all = 1;
  for (auto i = first; i < shape.size(); ++i) {
    if (shape[i] != 0 && all > bytes_max / shape[i]) return std::nullopt;
    all *= shape[i];
  }
  return all;
}

void check_name(std::string const& field, std::string_view text, std::initializer_list<std::string_view> names,
                std::vector<http::FieldError>& errors) {
  if (std::ranges::find(names, text) == names.end()) errors.push_back({"/" + field, unknown_name(field, text, names)});
}

// Checks the requested clients.
void check_clients(std::vector<std::string> const& clients, std::vector<http::FieldError>& errors) {
  if (clients.empty() || clients.size() > clients_max)
    errors.push_back({"/clients", "1 to " + std::to_string(clients_max) + " names are expected"});
  auto sorted = clients;
  std::ranges::sort(sorted);
  if (auto const twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    errors.push_back({"/clients", "a name is listed twice"});
  for (std::size_t i = 0; i < clients.size(); ++i)
    if (!is_identifier(clients[i]))
      errors.push_back({"/clients/" + std::to_string(i), "is not 1 to 64 letters, digits and ._-"});
}

}  // namespace

http::Checked<CheckedParameter> check_parameter(std::string name, api::ParameterRequest request) {
  if (!api::is_parameter_name(name))
    return http::Problem(http::ProblemCode::bad_request,
                         "parameter names are 1 to 255 letters, digits and ._~/- without empty, . or .. parts");
  std::vector<http::FieldError> errors;
  CheckedParameter checked;
  auto& parameter = checked.parameter;
  auto const dtype = parse_dtype(request.dtype);
  if (!dtype) errors.push_back({"/dtype", unknown_name("dtype", request.dtype, names_of(all_dtypes))});
  auto const each = dtype ? element_bytes(*dtype) : 8;
  auto const elements = product(request.shape, 0), row = product(request.shape, 1);
  if (request.shape.size() > dimensions_max || !elements || !row || *elements > bytes_max / each)
    errors.push_back({"/shape", "has more than 32 dimensions, or more than 2^62 bytes"});
  if (request.staleness < -1 || request.staleness > staleness_max)
    errors.push_back({"/staleness", "expected -1 to " + std::to_string(staleness_max)});
  // Shards sum in the dtype itself: an average of integers could wrap.
  auto const is_integer = dtype && *dtype >= Dtype::i64;
  check_name("reduce", request.reduce, {"sum", "avg"}, errors);
  if (is_integer && request.reduce == "avg")
    errors.push_back({"/reduce", "is avg; of " + request.dtype + " there is only sum"});
  check_name("nonfinite", request.nonfinite, {"accept", "reject", "zero"}, errors);
  if (request.replicas < 1 || request.replicas > replicas_max) errors.push_back({"/replicas", "expected 1 or 2"});
  if (request.shards && (*request.shards < 1 || *request.shards > shards_max))
    errors.push_back({"/shards", "expected 1 to " + std::to_string(shards_max)});
  if (request.clients) check_clients(*request.clients, errors);
  if (!is_identifier(request.group)) errors.push_back({"/group", "is no name of a group"});
  if (request.lazy_rows && (*request.lazy_rows == 0 || request.shape.empty() || !row || *row == 0))
    errors.push_back({"/lazy_rows", "expected 1 or more, of a shape with rows"});
  if (request.lazy_rows && !request.shape.empty() && request.shards.value_or(1) > request.shape.front())
    errors.push_back({"/shards", "are more than there are rows"});
  check_name("durability", request.durability, {"none", "log"}, errors);
  check_name("device", request.device, {"cpu", "cuda"}, errors);
  if (request.lazy_rows && request.device == "cuda")
    errors.push_back({"/lazy_rows", "needs device cpu: on a GPU all rows exist"});
  auto optimizer = api::complete(request.optimizer, "/optimizer");
  if (!optimizer) std::ranges::copy(optimizer.error().errors, std::back_inserter(errors));
  auto initializer = api::complete(request.initializer, "/initializer");
  if (!initializer) std::ranges::copy(initializer.error().errors, std::back_inserter(errors));
  // Integers support only sums.
  if (is_integer && optimizer && optimizer->name != "none")
    errors.push_back({"/optimizer/name", "is " + optimizer->name + "; of " + request.dtype + " there is only none"});
  if (is_integer && initializer && initializer->name != "zeros")
    errors.push_back({"/initializer/name", "is " + initializer->name + "; " + request.dtype + " begins with zeros"});
  // In rounds the norm of the sum of all gradients is only known to a shard with all elements.
  if (optimizer && optimizer->clip_norm && request.staleness == 0) {
    if (request.shards.value_or(1) != 1)
      errors.push_back({"/optimizer/clip_norm", "needs shards: 1 where staleness is 0"});
    request.shards = 1;
  }
  if (!errors.empty()) {
    http::Problem problem(http::ProblemCode::invalid_field, errors.front().pointer + ": " + errors.front().detail);
    problem.errors = std::move(errors);
    return problem;
  }
  parameter.name = std::move(name);
  parameter.dtype = std::move(request.dtype);
  parameter.shape = std::move(request.shape);
  parameter.group = std::move(request.group);
  parameter.optimizer = std::move(*optimizer);
  parameter.initializer = std::move(*initializer);
  parameter.staleness = request.staleness;
  parameter.reduce = std::move(request.reduce);
  parameter.replicas = request.replicas;
  parameter.nonfinite = std::move(request.nonfinite);
  parameter.clients = std::move(request.clients).value_or(std::vector<std::string>());
  parameter.lazy_rows = request.lazy_rows;
  parameter.durability = std::move(request.durability);
  parameter.device = std::move(request.device);
  parameter.bytes = *elements * each;
  checked.elements = *elements;
  checked.row_elements = *row;
  checked.shards = request.shards;
  return checked;
}

namespace {

// One shard per member, none of them small. A large parameter has more shards, equally many per member, so that members
// that come later get their share.
std::uint64_t shards_by_size(CheckedParameter const& checked, std::size_t members) {
  auto const bytes = checked.parameter.bytes;
  auto const lazy = checked.parameter.lazy_rows.has_value();
  auto const rows = lazy ? checked.parameter.shape.front() : UINT64_MAX;
  auto const by_size = std::clamp<std::uint64_t>(bytes / shard_bytes_min, 1, std::max(rows, std::uint64_t{1}));
  auto const one_each = std::min<std::uint64_t>({members, by_size, shards_max});
  // lazy_rows is a limit per shard: more shards would change the total limit.
  auto const movable = lazy ? 0 : std::min(bytes / movable_bytes_min, movable_shards);
  if (movable <= members) return one_each;
  return std::min<std::uint64_t>((movable + members - 1) / members * members, shards_max);
}

}  // namespace

std::vector<ElementRange> cut(CheckedParameter const& checked, std::size_t members) {
  auto const shards = checked.shards.value_or(static_cast<std::uint32_t>(shards_by_size(checked, members)));
  auto const row = std::max<std::uint64_t>(checked.row_elements, 1);
  auto const unit = checked.elements / row >= shards ? row : 1;
  auto const units = checked.elements / unit;
  std::vector<ElementRange> ranges;
  std::uint64_t begin = 0;
  for (std::uint32_t i = 0; i < shards; ++i) {
    auto const share = units / shards + (i < units % shards ? 1 : 0);
    ranges.push_back({begin, begin + share * unit});
    begin = ranges.back().end;
  }
  return ranges;
}

api::Member const& least_loaded(std::vector<api::Member> const& members, Load const& load,
                                std::vector<std::string> const& avoided) {
  auto const cost = [&](api::Member const& member) {
    auto const found = load.find(member.worker);
    auto const is_avoided = std::ranges::find(avoided, member.worker) != avoided.end();
    return std::pair(is_avoided, found == load.end() ? std::uint64_t{0} : found->second);
  };
  return *std::ranges::min_element(members, {}, cost);
}

api::Member const* pick_better_owner(std::vector<api::Member> const& members, api::Member const& owner,
                                     std::string const& backup, std::uint64_t bytes, Load const& load) {
  auto const load_of = [&](std::string const& worker) {
    auto const found = load.find(worker);
    return found == load.end() ? std::uint64_t{0} : found->second;
  };
  api::Member const* best = nullptr;
  for (auto const& member : members)
    if (member.worker != owner.worker && member.worker != backup &&
        (best == nullptr || load_of(member.worker) < load_of(best->worker)))
      best = &member;
  return best != nullptr && load_of(best->worker) + bytes < load_of(owner.worker) ? best : nullptr;
}

api::Member const* pick_backup(std::vector<api::Member> const& members, api::Member const& owner, Load const& load) {
  api::Member const* best = nullptr;
  auto const merit = [&](api::Member const& member) {
    auto const found = load.find(member.worker);
    auto const bytes = found == load.end() ? std::uint64_t{0} : found->second;
    return std::pair(static_cast<int>(shared_level(member.locality, owner.locality)), ~bytes);
  };
  for (auto const& member : members)
    if (member.worker != owner.worker && (best == nullptr || merit(member) > merit(*best))) best = &member;
  return best;
}

}  // namespace chorus::coordinator
