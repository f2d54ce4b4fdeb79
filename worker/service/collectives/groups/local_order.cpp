#include "worker/service/collectives/groups/local_order.hpp"

#include <unordered_set>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/error_feedback.hpp"
#include "collectives/core/nearest_name.hpp"
#include "collectives/core/op.hpp"
#include "collectives/model/choice/averages.hpp"
#include "worker/engine/trace/run_identity.hpp"
#include "worker/service/operands/fused_list.hpp"
#include "worker/service/operands/local_shape.hpp"
#include "worker/service/operands/multi_tensor_adapter.hpp"
#include "worker/service/requests/problems.hpp"
#include "worker/tensors/errc.hpp"

namespace chorus::service {
namespace {

using http::Checked;
using http::Problem;

std::string quoted(std::string const& text) { return '"' + text.substr(0, 80) + '"'; }

std::optional<Problem> check_fused(Op op, api::LocalCall const& call) {
  if (!takes_fused(op))
    return invalid_field("/tensors", std::string(name(op)) + " takes one: all_reduce, reduce, broadcast, all_gather, " +
                                         "reduce_scatter and all_to_all take several");
  if (!call.counts.empty() || !call.receive_counts.empty())
    return invalid_field(call.counts.empty() ? "/receive_counts" : "/counts", "is for one tensor, not for a list");
  if (call.tensors.size() > max_fused_tensors)
    return invalid_field("/tensors", "has " + std::to_string(call.tensors.size()) + " names, at most " +
                                         std::to_string(max_fused_tensors) + " are possible");
  if (call.output) return invalid_field("/output", "is one; the results of tensors are their next versions");
  if (call.in_place) return invalid_field("/in_place", "tensors are packed: their results are new versions");
  if (call.dtype || call.shape) return invalid_field(call.dtype ? "/dtype" : "/shape", "is that of one tensor");
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < call.tensors.size(); ++i) {
    auto const at = "/tensors/" + std::to_string(i);
    if (!tensors::is_valid_name(call.tensors[i])) return invalid_field(at, "is not a tensor name");
    if (!seen.insert(call.tensors[i]).second) return invalid_field(at, quoted(call.tensors[i]) + " is listed twice");
  }
  return std::nullopt;
}

std::optional<Problem> check_names(Op op, api::LocalCall const& call) {
  bool const is_barrier = op == Op::barrier;
  if (is_barrier && !call.tensor.empty()) return invalid_field("/tensor", "a barrier has none");
  if (is_barrier && !call.tensors.empty()) return invalid_field("/tensors", "a barrier has none");
  if (is_barrier && call.output) return invalid_field("/output", "a barrier has none");
  if (is_barrier) return std::nullopt;
  if (call.tensor.empty() && call.tensors.empty())
    return invalid_field("/tensor", "is missing, and tensors names none");
  if (!call.tensor.empty() && !call.tensors.empty()) return invalid_field("/tensors", "does not go with tensor");
  if (!call.tensors.empty()) return check_fused(op, call);
  if (!tensors::is_valid_name(call.tensor)) return invalid_field("/tensor", quoted(call.tensor) + " is no tensor name");
  if (call.output && !tensors::is_valid_name(*call.output))
    return invalid_field("/output", quoted(*call.output) + " is no tensor name");
  return std::nullopt;
}

std::optional<Problem> check_in_place(Op op, api::LocalCall const& call) {
  if (!call.in_place) return std::nullopt;
  if (call.output) return invalid_field("/in_place", "the result goes to another tensor, " + quoted(*call.output));
  bool const as_large = op == Op::all_reduce || op == Op::reduce || op == Op::broadcast || op == Op::barrier ||
                        (op == Op::all_to_all && call.counts.empty());
  if (as_large) return std::nullopt;
  return invalid_field("/in_place", std::string(name(op)) +
                                        " leaves another size than it finds; all_reduce, reduce, broadcast and "
                                        "all_to_all without counts can be in place");
}

std::optional<Problem> check_root(Op op, std::uint32_t ranks, api::LocalCall const& call) {
  if (call.root >= ranks)
    return invalid_field("/root", "is " + std::to_string(call.root) + " in a group of " + std::to_string(ranks));
  if (call.root != 0 && !is_rooted(op)) return invalid_field("/root", std::string(name(op)) + " has none");
  return std::nullopt;
}

std::optional<Problem> check_local_algorithm(api::LocalCall const& call) {
  if (call.local_algorithm == "auto") return std::nullopt;
  if (!call.tensors.empty()) return invalid_field("/local_algorithm", "is for the parts of one tensor");
  auto const known = algorithms::find(call.local_algorithm);
  if (known) return std::nullopt;
  return invalid_field("/local_algorithm", known.error().detail);
}

std::optional<Problem> check_contributions(Op op, ReduceOp reduce, api::LocalCall const& call) {
  if (!call.contributions) return std::nullopt;
  if (!reduces(op) || reduce != ReduceOp::avg) return invalid_field("/contributions", "is for avg alone");
  return service::check_contributions(*call.contributions);
}

// The tensors of this member under the name.
struct Found {
  LocalTensor tensor;
  std::uint32_t parts = 0;                          // number of tensors name/0 and so on; 0: one tensor
  std::shared_ptr<FusedList const> list = nullptr;  // set if the tensor is the first portion of a list
};

LocalTensor described(tensors::Tensor const& tensor) {
  return {tensor.name, tensor.dtype, tensor.shape, tensor.elements(), tensor.version};
}

std::optional<Problem> compare_declared(LocalTensor const& tensor, api::LocalCall const& call) {
  if (call.dtype && *call.dtype != name(tensor.dtype))
    return invalid_field("/dtype", "is " + quoted(*call.dtype) + ", the tensor is " + std::string(name(tensor.dtype)));
  if (call.shape && *call.shape != tensor.shape)
    return invalid_field(
        "/shape", "is " + tensors::to_string(*call.shape) + ", the tensor's is " + tensors::to_string(tensor.shape));
  return std::nullopt;
}

// Finds grad/0, grad/1, ... up to the first number that is missing.
Checked<std::optional<Found>> find_parts(tensors::Store const& store, std::string const& name) {
  std::optional<Found> found;
  for (std::uint32_t part = 0;; ++part) {
    auto const tensor = store.get(part_name(name, part));
    if (!tensor && tensor.error().code == tensors::TensorErrc::unknown) return found;
    if (!tensor) return to_problem(tensor.error());
    if (part == max_parts)
      return invalid_field("/tensor", part_name(name, part) + " exists: a worker brings at most " +
                                          std::to_string(max_parts) + " tensors of one name");
    if (!found) {
      found = Found{described(*tensor), 0};
      found->tensor.name = name;
      found->tensor.version = 0;
    }
    found->tensor.version += tensor->version;
    found->parts = part + 1;
  }
}

// A member that only receives may describe its tensor in the call instead.
Checked<Found> find_declared(Op op, plan::Rank rank, api::LocalCall const& call, Problem unknown) {
  bool const is_told = (op == Op::broadcast || op == Op::scatter) && rank != call.root && !call.in_place;
  if (is_told) unknown.detail += "; with dtype and shape it need not exist here";
  unknown.errors.push_back({"/tensor", "there is none of this name here"});
  if (!is_told || (!call.dtype && !call.shape)) return unknown;
  if (!call.dtype) return invalid_field("/dtype", "is missing: there is no tensor to tell it");
  if (!call.shape) return invalid_field("/shape", "is missing: there is no tensor to tell it");
  auto const dtype = parse_dtype(*call.dtype);
  if (!dtype) return invalid_field("/dtype", unknown_name("dtype", *call.dtype, names_of(all_dtypes)));
  auto const elements = tensors::element_count(*call.shape, *dtype);
  if (!elements) return invalid_field("/shape", elements.error().detail);
  return Found{{call.tensor, *dtype, *call.shape, *elements, 0}, 0};
}

Checked<Found> find(tensors::Store const& store, Op op, plan::Rank rank, api::LocalCall const& call) {
  auto const tensor = store.get(call.tensor);
  if (!tensor && tensor.error().code != tensors::TensorErrc::unknown) return to_problem(tensor.error(), {rank});
  Found found;
  if (tensor) {
    found.tensor = described(*tensor);
  } else {
    auto parts = find_parts(store, call.tensor);
    if (!parts) return parts.error();
    if (!*parts) return find_declared(op, rank, call, to_problem(tensor.error(), {rank}));
    found = std::move(**parts);
  }
  if (auto problem = compare_declared(found.tensor, call)) return std::move(*problem);
  return found;
}

// The first portion of the list, as one vector.
Checked<Found> find_fused(tensors::Store const& store, FusedCall const& fused, api::LocalCall const& call) {
  auto list = FusedList::make(fused, call.tensors, store);
  if (!list) return list.error();
  auto const elements = (*list)->portions().front().elements();
  return Found{{"", (*list)->dtype(), {elements}, elements, (*list)->version(0)}, 0, *list};
}

plan::Spec spec_of(Op op, api::Group const& group, api::Selection const& selection, api::LocalCall const& call) {
  plan::Spec spec{op,
                  selection.algorithm,
                  static_cast<std::uint32_t>(group.members.size()),
                  is_rooted(op) ? call.root : selection.root,
                  selection.arity,
                  call.in_place && op != Op::barrier,
                  selection.algorithm_shape};
  return positioned(std::move(spec), group);
}

}  // namespace

std::optional<Problem> check_call(Op op, api::LocalCall const& call) {
  auto const reduce = check_reduce(call.reduce);
  if (!reduce) return reduce.error();
  auto const compression = check_compression(call.compression);
  if (!compression) return compression.error();
  if (call.error_feedback.value_or(false))
    if (auto const able = check_error_feedback(*compression, !call.tensors.empty()); !able)
      return invalid_field("/error_feedback", able.error().detail);
  for (auto problem : {check_schedule(call.schedule), check_names(op, call), check_in_place(op, call),
                       check_local_algorithm(call), check_contributions(op, *reduce, call)})
    if (problem) return problem;
  return std::nullopt;
}

Checked<RunOrder> to_order(Assignment const& assignment, std::uint64_t sequence, Op op,
                           std::chrono::steady_clock::time_point deadline, api::LocalCall const& call,
                           tensors::Store const& store) {
  auto const ranks = static_cast<std::uint32_t>(assignment.members.size());
  auto const reduce = check_reduce(call.reduce);
  if (!reduce) return reduce.error();
  auto const compression = check_compression(call.compression);
  if (!compression) return compression.error();
  if (auto problem = check_root(op, ranks, call)) return std::move(*problem);

  Found found;
  auto local = Checked<LocalShape>(LocalShape{{ranks, {}, {}}, {}, ranks});
  if (op != Op::barrier) {
    auto looked_up = call.tensors.empty() ? find(store, op, assignment.rank, call)
                                          : find_fused(store, {op, ranks, assignment.rank}, call);
    if (!looked_up) return looked_up.error();
    found = std::move(*looked_up);
    if (call.tensors.empty())
      local = shape_local_call(op, ranks, call.root, assignment.rank, found.tensor, call);
    else
      local = LocalShape{{found.tensor.elements, {}, {}}, {}, found.tensor.elements};
    if (!local) return local.error();
  }
  bool const is_one = found.parts == 0 && call.tensors.empty();
  if (!is_one && call.output)
    return invalid_field("/output", "is one; the results of " + part_name(call.tensor, 0) + " and so on are theirs");
  auto const width = op == Op::barrier ? 1 : element_bytes(found.tensor.dtype);
  auto const bytes = local->elements ? std::optional(*local->elements * width) : std::nullopt;
  auto const sent = decide_compression(assignment.group, {op, *reduce, found.tensor.dtype, bytes}, *compression);
  if (!sent) return sent.error();
  bool const averages_over_parts = found.parts > 0 && *reduce == ReduceOp::avg;
  auto const contributions =
      call.contributions.value_or(averages_over_parts ? std::uint64_t{found.parts} * ranks : std::uint64_t{0});
  bool const is_large_average =
      contributions == 0 && bytes && model::is_large_average(op, *reduce, found.tensor.dtype, *bytes);
  auto const selection = select(assignment.group, name(op), bytes, call.algorithm, *sent, is_large_average);
  if (!selection) return selection.error();

  RunOrder order;
  order.run = engine::local_run_number(assignment.group.name, assignment.group.epoch, sequence);
  order.group = assignment.group.name;
  order.epoch = assignment.group.epoch;
  order.token = assignment.token;
  order.spec = spec_of(op, assignment.group, *selection, call);
  order.sizes = std::move(local->sizes);
  if (is_one) order.result = std::move(local->result);
  order.rank = assignment.rank;
  order.members = assignment.members;
  order.tensor = call.tensor;
  order.fused = std::move(found.list);
  order.parts = found.parts;
  bool const is_named = call.local_algorithm != "auto";
  if (is_named) order.local_algorithm = call.local_algorithm;
  order.any_order = !is_named || !keeps_order(call.local_algorithm);
  order.contributions = contributions;
  if (op != Op::barrier) order.admitted = Admitted{found.tensor.version, found.tensor.dtype};
  order.reduce = *reduce;
  order.compression = *sent;
  order.error_feedback = call.error_feedback.value_or(false);
  order.schedule = call.schedule;
  if (!order.schedule.segment_bytes) order.schedule.segment_bytes = assignment.segment_bytes;
  order.deadline = deadline;
  return order;
}

Checked<RunOrder> portion_of(RunOrder const& first, std::size_t portion, Assignment const& assignment,
                             api::LocalCall const& call) {
  auto const& list = *first.fused;
  auto const& vector = list.portions()[portion];
  bool const is_large_average =
      first.contributions == 0 && model::is_large_average(first.spec.op, first.reduce, list.dtype(), vector.bytes);
  auto const selection =
      select(assignment.group, name(first.spec.op), vector.bytes, call.algorithm, first.compression, is_large_average);
  if (!selection) return selection.error();
  auto order = first;
  order.portion = portion;
  order.run = engine::portion_run_number(first.run, portion);
  order.spec = spec_of(first.spec.op, assignment.group, *selection, call);
  order.sizes = {vector.elements(), {}, {}};
  order.admitted = Admitted{list.version(portion), list.dtype()};
  return order;
}

}  // namespace chorus::service
