#include "worker/bench/modes/contenders.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/model/choice/shared_memory.hpp"
#include "collectives/plan/program.hpp"

namespace chorus::bench {
namespace {

Result<model::Choice> choose(Options const& options, Task const& task, std::uint32_t ranks, std::string algorithm) {
  std::vector<Locality> const one_host(ranks, Locality{"", "", "", "localhost"});
  if (algorithm == "auto" && may_share(options) && task.op == Op::all_reduce && !options.constants && !task.compression)
    algorithm = model::shared_memory_all_reduce(ranks, task.elements * element_bytes(task.dtype), options.in_place);
  auto const format = task.compression;
  return model::select(wish_of(options, task.op, std::move(algorithm)), one_host,
                       format ? carriers(*format, task.elements) : task.elements,
                       element_bytes(format ? carrier_of(*format) : task.dtype), constants_of(options));
}

// Removes what does not affect the execution: name, drawing and unused memory.
void forget_what_is_not_run(plan::Program& program) {
  program.spec = {};
  program.rooted = false;
  program.round_begin.clear();
  auto const uses_scratch = [](plan::Instruction const& instruction) {
    return (instruction.reads_src() && instruction.src == plan::Buffer::scratch) ||
           (instruction.writes_dst() && instruction.dst == plan::Buffer::scratch);
  };
  if (std::ranges::none_of(program.instructions, uses_scratch)) program.scratch_chunks = 0;
}

// The programs of all ranks, independent of the algorithm's name.
Result<std::vector<plan::Program>> programs_of(plan::Spec const& spec) {
  auto const algorithm = algorithms::find(spec.algorithm);
  if (algorithm.has_error()) return algorithm.error();
  std::vector<plan::Program> programs;
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank) {
    auto program = plan::build(**algorithm, spec, rank);
    if (program.has_error()) return program.error();
    forget_what_is_not_run(*program);
    programs.push_back(std::move(*program));
  }
  return programs;
}

class Collection {
 public:
  Status add(Contender contender) {
    auto programs = programs_of(contender.spec);
    if (programs.has_error()) return programs.error();
    if (std::find(programs_.begin(), programs_.end(), *programs) != programs_.end()) return ok();
    programs_.push_back(std::move(*programs));
    contenders_.push_back(std::move(contender));
    return ok();
  }
  [[nodiscard]] std::vector<Contender>&& take() { return std::move(contenders_); }

 private:
  std::vector<std::vector<plan::Program>> programs_;
  std::vector<Contender> contenders_;
};

}  // namespace

std::string label(plan::Spec const& spec) {
  auto const algorithm = algorithms::find(spec.algorithm);
  auto text = spec.algorithm;
  if (algorithm.has_value() && (*algorithm)->uses_arity) text += " arity " + std::to_string(spec.arity);
  for (std::size_t i = 0; i < spec.shape.size(); ++i)
    text += (i == 0 ? " shape " : ",") + std::to_string(spec.shape[i]);
  return text;
}

Result<std::vector<Contender>> asked_contenders(Options const& options, Task const& task, std::uint32_t ranks) {
  bool const all = options.algorithms == std::vector<std::string>{"all"};
  auto names = options.algorithms;
  if (all) {
    names.clear();
    for (auto const* algorithm : algorithms::all_for(task.op)) names.emplace_back(algorithm->name);
  }
  std::vector<Contender> contenders;
  for (auto const& name : names) {
    auto const choice = choose(options, task, ranks, name);
    if (choice.has_value())
      contenders.push_back({choice->spec, choice->cost.seconds});
    else if (!all)
      return choice.error();
  }
  if (contenders.empty()) return choose(options, task, ranks, "auto").error();
  return contenders;
}

Result<std::vector<Contender>> all_contenders(Options const& options, Task const& task, std::uint32_t ranks) {
  auto const choice = choose(options, task, ranks, "auto");
  if (choice.has_error()) return choice.error();
  Collection collection;
  if (auto const added = collection.add({choice->spec, choice->cost.seconds}); added.has_error()) return added.error();
  for (auto const& candidate : choice->considered)
    if (auto const added = collection.add({candidate.spec, candidate.cost.seconds}); added.has_error())
      return added.error();
  for (auto const* algorithm : algorithms::all_for(task.op)) {
    auto const own = choose(options, task, ranks, std::string(algorithm->name));
    if (own.has_error()) continue;
    if (auto const added = collection.add({own->spec, own->cost.seconds}); added.has_error()) return added.error();
  }
  return collection.take();
}

}  // namespace chorus::bench
