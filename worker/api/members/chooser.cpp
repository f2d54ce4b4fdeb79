#include "worker/api/members/chooser.hpp"

#include <algorithm>
#include <bit>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/model/choice/averages.hpp"
#include "collectives/model/choice/select.hpp"
#include "collectives/model/choice/shared_memory.hpp"
#include "collectives/plan/positions.hpp"

namespace chorus::embedded {
namespace {

constexpr std::size_t known_max = 64;
constexpr std::uint64_t largest_bytes = std::uint64_t{1} << 40;

// Mostly both are empty, which a small call has no time to copy.
template <class T>
void assign(std::vector<T>& to, std::vector<T> const& from) {
  if (!to.empty() || !from.empty()) to = from;
}

}  // namespace

Result<CallOptions*> Chooser::choose(Op op, std::uint64_t bytes, Dtype dtype, std::string_view path, bool in_place,
                                     CollectiveOptions const& options) {
  auto const known = find(op, bytes, dtype, path == "shm", in_place, options);
  if (known.has_error()) return known.error();
  auto& [choice, call] = **known;
  call.algorithm = choice.algorithm;
  call.root = is_rooted(op) ? options.root : choice.root;
  call.arity = options.arity.value_or(choice.arity);
  assign(call.shape, options.algorithm_shape.empty() ? choice.shape : options.algorithm_shape);
  assign(call.by_position, choice.by_position);
  call.compression = choice.compression;
  call.error_feedback = options.error_feedback;
  assign(call.counts, options.counts);
  assign(call.receive_counts, options.receive_counts);
  call.timeout = options.timeout;
  call.segment_bytes = segment_bytes_;
  return &call;
}

Result<Chooser::Answer*> Chooser::find(Op op, std::uint64_t bytes, Dtype dtype, bool shares_memory, bool in_place,
                                       CollectiveOptions const& options) {
  auto const root = is_rooted(op) ? options.root : 0;
  for (auto known = known_.begin(); known != known_.end(); ++known)
    if (known->op == op && known->bytes == bytes && known->dtype == dtype && known->reduce == options.reduce &&
        known->root == root && known->in_place == in_place && known->algorithm == options.algorithm &&
        known->compression == options.compression) {
      if (known != known_.begin()) std::rotate(known_.begin(), known, known + 1);
      return &known_.front().answer;
    }
  auto choice = decide(op, bytes, dtype, shares_memory, in_place, options);
  if (choice.has_error()) return choice.error();
  if (known_.size() == known_max) known_.pop_back();
  known_.insert(known_.begin(), Known{op,
                                      bytes,
                                      dtype,
                                      options.reduce,
                                      root,
                                      in_place,
                                      options.algorithm,
                                      options.compression,
                                      {std::move(*choice), {}}});
  return &known_.front().answer;
}

Result<Chooser::Choice> Chooser::decide(Op op, std::uint64_t bytes, Dtype dtype, bool shares_memory, bool in_place,
                                        CollectiveOptions const& options) const {
  auto const sent =
      service::decide_compression(group_, {op, options.reduce, dtype, bytes, shares_memory}, options.compression);
  if (!sent) return Error(PlanErrc::unsupported_operation, sent.error().detail);
  bool const is_large_average =
      options.algorithm_shape.empty() && model::is_large_average(op, options.reduce, dtype, bytes);
  bool const adds_codes = *sent && !(*sent)->between && reduces(op);
  if (options.algorithm == "auto" && shares_memory && !adds_codes) {
    auto choice = for_shared_memory(op, bytes, in_place, is_rooted(op) ? options.root : 0, is_large_average);
    if (choice) choice->compression = *sent;
    return choice;
  }
  // Where members share memory, codes between groups have nothing to pass.
  auto const codes = shares_memory && !adds_codes ? std::nullopt : *sent;
  auto line = service::select(group_, name(op), bytes, options.algorithm, codes, is_large_average);
  if (!line) return Error(PlanErrc::unsupported_operation, line.error().detail);
  auto const algorithm = algorithms::find(line->algorithm);
  if (algorithm.has_error()) return algorithm.error();
  Choice choice{*algorithm, line->root, line->arity, std::move(line->algorithm_shape), *sent, {}};
  if (group_.by_position) {
    plan::Spec const spec{.op = op, .algorithm = line->algorithm, .ranks = number_of_members(), .in_place = in_place};
    choice.by_position = service::positioned(spec, group_).by_position;
  }
  return choice;
}

// Sizes are rounded up to powers of two, so that a program with many of them does not cost the model every time.
Result<Chooser::Choice> Chooser::for_shared_memory(Op op, std::uint64_t bytes, bool in_place, std::uint32_t root,
                                                   bool is_large_average) const {
  auto const ranks = number_of_members();
  if (op == Op::all_reduce) {
    auto const algorithm = algorithms::find(model::shared_memory_all_reduce(ranks, bytes, in_place));
    if (algorithm.has_error()) return algorithm.error();
    return Choice{*algorithm, 0, 2, {}, {}, {}};
  }
  std::vector<Locality> const one_host(ranks, Locality{"", "", "", "localhost"});
  model::Wish wish;
  wish.op = op;
  if (is_rooted(op)) wish.root = root;
  wish.uneven = has_blocks(op);
  wish.without_wider_sums = is_large_average;
  auto const rounded = std::bit_ceil(std::clamp<std::uint64_t>(bytes, 1, largest_bytes));
  auto chosen = model::select(wish, one_host, rounded, 1, model::Constants::shared_memory());
  if (chosen.has_error()) return chosen.error();
  auto const algorithm = algorithms::find(chosen->spec.algorithm);
  if (algorithm.has_error()) return algorithm.error();
  return Choice{*algorithm, chosen->spec.root, chosen->spec.arity, std::move(chosen->spec.shape), {}, {}};
}

}  // namespace chorus::embedded
