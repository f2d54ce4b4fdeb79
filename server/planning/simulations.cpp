#include "server/planning/simulations.hpp"

#include <algorithm>
#include <tuple>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/dtype.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/core/nearest_name.hpp"
#include "collectives/model/choice/compressions.hpp"
#include "collectives/model/choice/select.hpp"
#include "collectives/model/codec.hpp"
#include "collectives/model/time/simulate.hpp"
#include "server/planning/explain.hpp"
#include "server/planning/place.hpp"

namespace chorus::planning {
namespace {

http::Problem invalid_at(std::string pointer, std::string detail) {
  http::Problem problem(http::ProblemCode::invalid_field, detail);
  problem.errors.push_back({std::move(pointer), std::move(detail)});
  return problem;
}

std::vector<std::string_view> names_of_algorithms() {
  std::vector<std::string_view> names{"auto", "all"};
  for (auto const* algorithm : algorithms::all()) names.push_back(algorithm->name);
  return names;
}

std::string topology_text(api::SimulationRequest const& request) {
  auto const linked = request.links ? request.links->bandwidth_gbyte_per_s.size() : 1;
  auto text = request.topology.value_or("flat:" + std::to_string(request.links ? linked : request.ranks.value_or(1)));
  if (request.overrides) text += ";" + *request.overrides;
  return text;
}

http::Checked<topology::ShapeSpec> topology_of(api::SimulationRequest const& request) {
  if (!request.topology && !request.ranks && !request.links)
    return invalid_at("/ranks", "give ranks, a topology such as hosts:4x8, or links");
  if (request.links && !request.topology)
    if (auto const rows = shape_of(*request.links); rows.has_error()) return rows.error();
  if (!request.topology && request.ranks && (*request.ranks < 1 || *request.ranks > plan::max_ranks))
    return invalid_at("/ranks",
                      std::to_string(*request.ranks) + " ranks; expected 1 to " + std::to_string(plan::max_ranks));
  auto shape = topology::parse_shape(topology_text(request));
  if (shape.has_error()) return invalid_at(request.topology ? "/topology" : "/overrides", shape.error().detail);
  if (request.ranks)
    if (auto const status = topology::check_ranks(*shape, *request.ranks); status.has_error())
      return invalid_at("/ranks", status.error().detail);
  return std::move(*shape);
}

bool is_every(std::string const& algorithm) { return algorithm == "auto" || algorithm == "all"; }

http::Checked<model::Wish> wish_of(api::SimulationRequest const& request, std::uint32_t ranks) {
  auto const op = parse_op(request.op);
  if (!op) return invalid_at("/op", unknown_name("operation", request.op, names_of(all_ops)));
  if (!is_every(request.algorithm) && algorithms::find(request.algorithm).has_error())
    return invalid_at("/algorithm", unknown_name("algorithm", request.algorithm, names_of_algorithms()));
  if (request.root && *request.root >= ranks)
    return invalid_at("/root", "rank " + std::to_string(*request.root) + " in a group of " + std::to_string(ranks));
  if (request.arity && *request.arity == 0) return invalid_at("/arity", "0; expected at least 1");
  if (request.algorithm_shape && is_every(request.algorithm))
    return invalid_at("/algorithm_shape", "a shape belongs to an algorithm; name it");
  if (request.algorithm_shape && request.algorithm_shape->size() > plan::max_shape)
    return invalid_at("/algorithm_shape", "more than " + std::to_string(plan::max_shape) + " numbers");
  model::Wish wish;
  wish.op = *op;
  wish.algorithm = is_every(request.algorithm) ? "auto" : request.algorithm;
  wish.root = request.root;
  wish.arity = request.arity;
  wish.shape = request.algorithm_shape;
  wish.reproducible = request.reproducible;
  return wish;
}

http::Checked<Vector> vector_of(api::SimulationRequest const& request) {
  auto const dtype = parse_dtype(request.dtype);
  if (!dtype) return invalid_at("/dtype", unknown_name("dtype", request.dtype, names_of(all_dtypes)));
  auto const size = element_bytes(*dtype);
  if (request.bytes % size != 0)
    return invalid_at("/bytes", std::to_string(request.bytes) + " is not a multiple of the " + std::to_string(size) +
                                    " bytes of " + request.dtype);
  return Vector{{request.bytes / size, {}, {}}, *dtype};
}

http::Checked<std::optional<Compression>> sent_by(api::SimulationRequest const& request, Op op, Dtype dtype) {
  auto const wish = compression_of(request.compression, op, dtype);
  if (wish.has_error()) return invalid_at("/compression", wish.error().detail);
  if (!*wish) return std::optional<Compression>();
  if ((*wish)->is_automatic())
    return invalid_at("/compression", "'auto' is for dry runs; name a format to simulate it");
  return (*wish)->fixed();
}

// An algorithm and the specs to simulate.
struct Entry {
  plan::Algorithm const* algorithm;
  std::vector<plan::Spec> specs;
};

class Study {
 public:
  // The wish says what is sent. `network`: of runs of what is sent.
  Study(model::Wish const& wish, model::Network const& network, Vector vector)
      : wish_(wish),
        network_(network),
        vector_(std::move(vector)),
        elements_(vector_.priced_elements(wish.compression, wish.op, network.ranks())),
        element_bytes_(vector_.priced_element_bytes(wish.compression)),
        candidates_(wish, network) {
    if (model::coded_level(wish.compression, network)) codes_ = wish.compression->format;
    if (wish.compression && !wish.compression->between)
      conversion_s_ = model::conversion_s(network, wish.compression->format, wish.op, elements_);
  }

  // Empty if there is at least one entry.
  std::optional<http::Problem> find_entries(std::uint64_t rounds_max) {
    auto rounds = std::uint64_t{0};
    for (auto const* algorithm : algorithms::all()) {
      if (wish_.algorithm != "auto" && wish_.algorithm != algorithm->name) continue;
      auto specs = narrowed(*algorithm, candidates_.of(*algorithm));
      if (specs.empty() && wish_.algorithm != "auto") return refuse(candidates_.refusal(*algorithm));
      for (auto const& spec : specs) rounds += work(*algorithm, spec, rounds_max);
      if (!specs.empty()) entries_.push_back({algorithm, std::move(specs)});
    }
    if (entries_.empty()) return refuse(candidates_.refusal());
    if (rounds <= rounds_max) return std::nullopt;
    return invalid_at("/ranks", "over " + std::to_string(network_.ranks()) + " ranks this takes " +
                                    std::to_string(rounds) + " rounds of single ranks; expected up to " +
                                    std::to_string(rounds_max) + ": name an algorithm of fewer, take fewer ranks, or " +
                                    "ask `chorus simulate`, which has no limit");
  }

  [[nodiscard]] std::vector<api::SimulatedPlan> run(Watch const& watch) const {
    std::vector<api::SimulatedPlan> plans;
    for (auto const& [algorithm, specs] : entries_) {
      if (watch) watch(algorithm->name, plans.size(), entries_.size());
      std::optional<api::SimulatedPlan> best;
      for (auto const& spec : specs) {
        auto plan = simulated(*algorithm, spec);
        if (!best || plan.seconds < best->seconds) best = std::move(plan);
      }
      plans.push_back(std::move(*best));
    }
    // std::stable_sort does not compile: clang refuses what libstdc++ 12 uses for it. Insertion keeps the order of
    // equals too.
    for (auto next = plans.begin(); next != plans.end(); ++next)
      std::rotate(std::upper_bound(plans.begin(), next, *next,
                                   [](auto const& a, auto const& b) { return a.seconds < b.seconds; }),
                  next, next + 1);
    return plans;
  }

 private:
  // Counting the rounds searches the shape for every rank, too. If a single round of all ranks is too much already,
  // that one is returned.
  [[nodiscard]] std::uint64_t work(plan::Algorithm const& algorithm, plan::Spec const& spec,
                                   std::uint64_t rounds_max) const {
    auto const of_one_round = network_.ranks() * effort(spec);
    return of_one_round > rounds_max ? of_one_round : model::simulated_rounds(algorithm, spec) * effort(spec);
  }

  // Work of one round of a rank: algorithms search their shape, and for some shapes in requests they follow every
  // rank's path to a root.
  [[nodiscard]] std::uint64_t effort(plan::Spec const& spec) const {
    return 1 + spec.shape.size() / (wish_.shape ? 4 : 64);
  }

  // In large groups only the most promising spec is simulated.
  [[nodiscard]] std::vector<plan::Spec> narrowed(plan::Algorithm const& algorithm,
                                                 std::vector<plan::Spec> specs) const {
    if (specs.size() < 2 || network_.ranks() <= model::max_simulated_ranks) return specs;
    auto const seconds = [&](plan::Spec const& spec) {
      return model::price(algorithm, spec, network_, elements_, element_bytes_, codes_).seconds;
    };
    auto best = std::size_t{0};
    auto best_s = seconds(specs[0]);
    for (std::size_t i = 1; i < specs.size(); ++i)
      if (auto const folded_s = seconds(specs[i]); folded_s < best_s) std::tie(best, best_s) = std::pair(i, folded_s);
    return {std::move(specs[best])};
  }

  [[nodiscard]] api::SimulatedPlan simulated(plan::Algorithm const& algorithm, plan::Spec const& spec) const {
    auto const [cost, bottleneck] = model::simulate(algorithm, spec, network_, elements_, element_bytes_, codes_);
    return {spec.algorithm,
            spec.root,
            spec.arity,
            spec.shape,
            cost.seconds + conversion_s_,
            cost.rounds,
            cost.bytes_per_rank,
            vector_.wire_bytes(wish_.compression, spec),
            bottleneck};
  }

  [[nodiscard]] http::Problem refuse(Error const& error) const {
    bool const of_shape = error.code == PlanErrc::bad_parameter && wish_.shape;
    bool const of_arity = error.code == PlanErrc::bad_parameter && wish_.arity;
    return invalid_at(of_shape ? "/algorithm_shape" : of_arity ? "/arity" : refused_member(wish_), error.detail);
  }

  model::Wish const& wish_;
  model::Network const& network_;
  Vector const vector_;
  std::uint64_t const elements_;  // of the run
  std::size_t const element_bytes_;
  std::optional<WireFormat> codes_;  // of messages between groups
  double conversion_s_ = 0;          // before and after the run
  model::Candidates candidates_;
  std::vector<Entry> entries_;
};

}  // namespace

http::Checked<api::SimulationAnswer> simulate(api::SimulationRequest const& request, model::Constants const& constants,
                                              std::uint64_t rounds_max, Watch const& watch) {
  auto const shape = topology_of(request);
  if (shape.has_error()) return shape.error();
  auto const ranks = static_cast<std::uint32_t>(shape->localities.size());
  auto wish = wish_of(request, ranks);
  if (wish.has_error()) return wish.error();
  auto const vector = vector_of(request);
  if (vector.has_error()) return vector.error();
  auto const sent = sent_by(request, wish->op, vector->dtype);
  if (sent.has_error()) return sent.error();

  Place place{*shape, model::overridden(constants, *shape), std::nullopt, std::nullopt};
  if (request.links)
    if (auto problem = connect(place, *request.links, request.bytes)) return std::move(*problem);
  if (wish->root) wish->root = place.rank_of(*wish->root);
  if (*sent && !(*sent)->between) place.constants = model::of_codes(place.constants, (*sent)->format);
  auto const network = place.network();
  *wish = model::wish_for(*wish, *sent);
  Study study(*wish, network, *vector);
  if (auto problem = study.find_entries(rounds_max)) return std::move(*problem);
  api::SimulationAnswer answer;
  answer.op = request.op;
  answer.ranks = ranks;
  answer.bytes = request.bytes;
  answer.topology = topology_text(request) + (place.links ? " with given links" : "");
  answer.items = study.run(watch);
  answer.lower_bound = show_lower_bound(wish->op, ranks, request.bytes);
  if (place.ordered) answer.order = place.ordered->order;
  if (place.ordered) answer.stretch = place.ordered->stretch;
  return answer;
}

}  // namespace chorus::planning
