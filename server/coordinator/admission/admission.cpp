#include "server/coordinator/admission/admission.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>

#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

struct Field {
  char const* name;
  std::string RankTensor::*value;
};
constexpr Field dtype_field{"dtype", &RankTensor::dtype};
constexpr Field shape_field{"shape", &RankTensor::shape};

std::string title(RankTensor const& tensor) { return rank_title(tensor.rank, tensor.worker); }

// Returns the first rank that has the most common value.
RankTensor const& commonest(std::span<RankTensor const> ranks, std::string RankTensor::*value) {
  std::map<std::string_view, std::size_t> votes;
  for (auto const& tensor : ranks) ++votes[tensor.*value];
  return *std::ranges::max_element(ranks, {}, [&](RankTensor const& tensor) { return votes[tensor.*value]; });
}

void compare(std::span<RankTensor const> ranks, Field const& field, http::Problem& problem) {
  auto const& meant = commonest(ranks, field.value);
  for (auto const& tensor : ranks) {
    if (tensor.*field.value == meant.*field.value) continue;
    problem.errors.push_back({std::string("/") + field.name, std::string(field.name) + " of " + title(tensor) + " is " +
                                                                 tensor.*field.value + ", that of " + title(meant) +
                                                                 " is " + meant.*field.value});
    if (std::ranges::find(problem.ranks, tensor.rank) == problem.ranks.end()) problem.ranks.push_back(tensor.rank);
  }
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  auto const [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::vector<std::uint64_t>> parse_dimensions(std::string_view text) {
  std::vector<std::uint64_t> dimensions;
  while (!text.empty()) {
    auto const part = text.substr(0, text.find(','));
    auto const dimension = parse_number(part);
    if (!dimension || part.size() + 1 == text.size()) return std::nullopt;
    dimensions.push_back(*dimension);
    text.remove_prefix(std::min(text.size(), part.size() + 1));
  }
  return dimensions;
}

std::optional<std::uint64_t> product(std::vector<std::uint64_t> const& dimensions, std::size_t bytes) {
  if (std::ranges::find(dimensions, 0u) != dimensions.end()) return 0;
  std::uint64_t elements = 1;
  for (auto dimension : dimensions) {
    if (dimension > std::numeric_limits<std::int64_t>::max() / bytes / elements) return std::nullopt;
    elements *= dimension;
  }
  return elements;
}

bool is_bitwise(ReduceOp op) { return op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor; }
bool is_floating(Dtype dtype) {
  return dtype == Dtype::f64 || dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

}  // namespace

std::string rank_title(std::uint32_t rank, std::string const& worker) {
  return "rank " + std::to_string(rank) + " ('" + worker + "')";
}

http::Problem refusal(std::uint32_t rank, http::ProblemCode code, std::string detail) {
  http::Problem problem(code, std::move(detail));
  problem.ranks = {rank};
  return problem;
}

http::Checked<RankTensor> read_tensor(std::uint32_t rank, std::string const& worker, std::string const& tensor,
                                      http::Answer const& answer) {
  auto const who = rank_title(rank, worker);
  if (answer.status == 404)
    return refusal(rank, http::ProblemCode::unknown_tensor, who + " has no tensor '" + tensor + "'");
  if (answer.status == 409)
    return refusal(rank, http::ProblemCode::busy, "tensor '" + tensor + "' is being written on " + who);
  auto const dtype = answer.fields.find("Tensor-Dtype");
  auto const shape = answer.fields.find("Tensor-Shape");
  auto const version = answer.fields.find("Tensor-Version");
  auto const number = version ? parse_number(*version) : std::nullopt;
  if (!answer.ok() || !dtype || !shape || !number || !is_showable(*dtype, 64) || !is_showable(*shape, 1024))
    return refusal(rank, http::ProblemCode::worker_unreachable,
                   who + " answered HEAD /v1/tensors/" + tensor + " with status " + std::to_string(answer.status) +
                       " and without the fields Tensor-Dtype, Tensor-Shape and Tensor-Version");
  RankTensor found{rank, worker, std::string(*dtype), std::string(*shape), "cpu", *number};
  if (auto const device = answer.fields.find("Tensor-Device"); device && is_showable(*device, 64))
    found.device = *device;
  return found;
}

bool needs_tensor(AdmissionQuestion const& question, std::uint32_t rank) {
  if (question.op == Op::barrier) return false;
  bool const root_gives = question.op == Op::broadcast || question.op == Op::scatter;
  return !root_gives || question.in_place || rank == question.root;
}

bool takes_parts(AdmissionQuestion const& question) {
  bool const suits = question.op == Op::all_reduce || question.op == Op::reduce || question.op == Op::broadcast;
  return suits && !question.in_place && !question.output;
}

namespace {

std::string shape_text(std::vector<std::uint64_t> const& shape) {
  std::string text;
  for (auto const dimension : shape) text += (text.empty() ? "" : ",") + std::to_string(dimension);
  return text;
}

// True if the list, like "cuda:0,cuda:1", contains the device.
bool names(std::string const& list, std::string const& device) {
  return ("," + list + ",").find("," + device + ",") != std::string::npos;
}

}  // namespace

http::Checked<RankTensor> read_parts(std::uint32_t rank, std::string const& worker, std::string const& tensor,
                                     api::TensorList const& found) {
  auto const who = rank_title(rank, worker);
  RankTensor parts{rank, worker, {}, {}, {}, 0, 0};
  for (;;) {
    auto const name = tensor + "/" + std::to_string(parts.parts);
    auto const part = std::ranges::find(found.items, name, &api::TensorInfo::name);
    if (part == found.items.end()) break;
    auto const shape = shape_text(part->shape);
    if (parts.parts == 0) {
      if (!is_showable(part->dtype, 64)) break;
      parts.dtype = part->dtype;
      parts.shape = shape;
    } else if (part->dtype != parts.dtype || shape != parts.shape) {
      auto const detail =
          "on " + who + " " + name + " is not like " + tensor + "/0: " + shape + " against " + parts.shape;
      auto problem = refusal(rank, http::ProblemCode::mismatch, detail);
      problem.errors.push_back({"/tensor", detail});
      return problem;
    }
    if (is_showable(part->device, 64) && !names(parts.device, part->device))
      parts.device += (parts.device.empty() ? "" : ",") + part->device;
    parts.version += part->version;
    ++parts.parts;
  }
  if (parts.parts == 0)
    return refusal(rank, http::ProblemCode::unknown_tensor,
                   who + " has no tensor '" + tensor + "', nor '" + tensor + "/0'");
  return parts;
}

namespace {

// Replaces the first dimension by a star, because only the others have to agree: "*,1024".
void forget_rows(std::vector<RankTensor>& ranks) {
  for (auto& tensor : ranks) {
    auto const comma = tensor.shape.find(',');
    tensor.shape = "*" + (comma == std::string::npos ? "" : tensor.shape.substr(comma));
  }
}

http::Problem said_first(std::string const& tensor, http::Problem mismatch) {
  mismatch.detail = "tensor '" + tensor + "': " + mismatch.errors.front().detail;
  if (mismatch.errors.size() > 1) mismatch.detail += ", and " + std::to_string(mismatch.errors.size() - 1) + " more";
  std::ranges::sort(mismatch.ranks);
  return mismatch;
}

// Compares the tensors of all ranks; fields that need not agree have been made equal.
std::optional<http::Problem> compare_all(AdmissionQuestion const& question, std::vector<RankTensor> present) {
  http::Problem mismatch(http::ProblemCode::mismatch, "");
  compare(present, dtype_field, mismatch);
  bool const rows_may_differ = question.op == Op::all_gather || question.op == Op::gather ||
                               (question.op == Op::all_to_all && !question.counts.empty());
  if (rows_may_differ) forget_rows(present);
  if (question.op != Op::scatter) compare(present, shape_field, mismatch);
  if (mismatch.errors.empty()) return std::nullopt;
  return said_first(question.tensor, std::move(mismatch));
}

}  // namespace

bool lies_on_gpus(Admitted const& admitted) {
  bool any = false;
  for (auto const& device : admitted.devices) {
    if (device && names(*device, "cpu")) return false;
    any = any || device;
  }
  return any;
}

http::Checked<Admitted> admit(AdmissionQuestion const& question, std::span<std::optional<RankTensor> const> ranks) {
  Shapes shapes{question.op, question.root, question.tensor, question.output, question.counts, question.in_place, {},
                {}};
  Admitted admitted;
  std::vector<RankTensor> present;
  for (auto const& rank : ranks)
    if (rank) present.push_back(*rank);
  if (question.op == Op::barrier) {
    admitted.dtype = Dtype::u8;
  } else {
    if (auto problem = compare_all(question, present)) return std::move(*problem);
    auto const dtype = parse_dtype(present.front().dtype);
    if (!dtype)
      return invalid_field("/tensor",
                           "tensor '" + question.tensor + "' has the unknown dtype " + present.front().dtype);
    if (reduces(question.op) && is_bitwise(question.reduce) && is_floating(*dtype))
      return invalid_field("/reduce",
                           std::string(name(question.reduce)) + " does not exist for " + present.front().dtype);
    admitted.dtype = *dtype;
  }
  for (auto const& rank : ranks) {
    admitted.tensors.push_back(rank ? rank->parts : 0);
    admitted.devices.push_back(rank ? std::optional(rank->device) : std::nullopt);
    shapes.versions.push_back(rank ? rank->version : 0);
    shapes.shapes.emplace_back();
    if (!rank) continue;
    auto dimensions = parse_dimensions(rank->shape);
    if (!dimensions || !product(*dimensions, element_bytes(admitted.dtype)))
      return invalid_field("/tensor", "tensor '" + question.tensor + "' has the impossible shape " + rank->shape);
    if (admitted.shape.empty()) admitted.shape = *dimensions;
    shapes.shapes.back() = std::move(*dimensions);
  }
  auto shaping = shape_parts(shapes);
  if (shaping.has_error()) return shaping.error();
  admitted.elements = shaping.value().elements;
  admitted.bytes = admitted.elements * element_bytes(admitted.dtype);
  admitted.uneven = shaping.value().uneven;
  admitted.versions = std::move(shapes.versions);
  admitted.parts = std::move(shaping.value().parts);
  if (std::ranges::any_of(admitted.tensors, [](auto parts) { return parts > 0; }))
    for (std::size_t rank = 0; rank < admitted.tensors.size(); ++rank) {
      admitted.contributions += std::max(admitted.tensors[rank], 1u);
      if (admitted.tensors[rank] > 0) admitted.parts[rank].result.reset();  // next versions of the parts
    }
  return admitted;
}

http::Problem join_refusals(std::span<http::Problem const> refusals) {
  auto joined = refusals.front();
  if (refusals.size() == 1) return joined;
  joined.ranks.clear();
  for (auto const& refusal : refusals) {
    joined.ranks.insert(joined.ranks.end(), refusal.ranks.begin(), refusal.ranks.end());
    if (refusal.errors.empty()) joined.errors.push_back({"", refusal.detail});
  }
  joined.detail += ", and " + std::to_string(refusals.size() - 1) + " more";
  return joined;
}

}  // namespace chorus::coordinator
