#include "collectives/model/select.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <tuple>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/model/estimate.hpp"
#include "collectives/topology/order.hpp"

namespace chorus::model {
namespace {

using plan::Algorithm, plan::Program, plan::Rank, plan::Spec;

constexpr std::array<std::uint32_t, 3> arities{2, 4, 8};

std::string duration(double seconds) {
  std::array<char, 32> text{};
  auto const [scale, unit] = seconds < 1e-3 ? std::pair(1e6, "us")
                             : seconds < 1  ? std::pair(1e3, "ms")
                                            : std::pair(1.0, "s");
  std::snprintf(text.data(), text.size(), "%.2f %s", seconds * scale, unit);
  return text.data();
}

// "tree arity 2 root 0"
std::string describe(Spec const& spec, Algorithm const& algorithm) {
  auto text = spec.algorithm;
  if (algorithm.uses_arity) text += " arity " + std::to_string(spec.arity);
  if (!spec.shape.empty()) {
    text += " shape ";
    for (std::size_t i = 0; i < spec.shape.size() && i < 8; ++i) text += (i ? "x" : "") + std::to_string(spec.shape[i]);
    if (spec.shape.size() > 8) text += "...";
  }
  if (algorithm.rooted) text += " root " + std::to_string(spec.root);
  return text;
}

// The specs of one algorithm that are worth a look.
std::vector<Spec> variants(Algorithm const& algorithm, Wish const& wish, std::uint32_t ranks, Rank root) {
  Spec spec{.op = wish.op, .algorithm = std::string(algorithm.name), .ranks = ranks, .in_place = wish.in_place};
  if (algorithm.rooted || is_rooted(wish.op)) spec.root = root;
  spec.shape = wish.shape.value_or(plan::Shape());
  if (!algorithm.uses_arity) return {spec};
  std::vector<Spec> specs;
  for (auto const arity : arities) {
    spec.arity = wish.arity.value_or(arity);
    specs.push_back(spec);
    if (wish.arity || arity + 1 >= ranks) break;  // every larger arity is the same star
  }
  return specs;
}

class Selection {
 public:
  Selection(Wish const& wish, std::span<Locality const> localities, std::uint64_t elements, std::size_t element_bytes,
            Constants const& constants)
      : wish_(wish),
        localities_(localities),
        elements_(elements),
        element_bytes_(element_bytes),
        constants_(constants) {}

  Status consider_all() {
    auto const ranks = static_cast<std::uint32_t>(localities_.size());
    auto const root = wish_.root ? *wish_.root : is_rooted(wish_.op) ? 0 : topology::center(localities_);
    for (auto const* algorithm : algorithms::all())
      for (auto const& spec : variants(*algorithm, wish_, ranks, root)) {
        if (algorithm->check(spec).has_error() || !fits(*algorithm, spec)) continue;
        auto const cost = followed() ? follow(*algorithm, spec) : approximate(spec);
        if (cost.has_error()) return cost.error();
        considered_.push_back({{spec, cost.value()}, algorithm, considered_.size()});
      }
    std::sort(considered_.begin(), considered_.end(), [](auto const& a, auto const& b) {
      return std::tie(a.cost.seconds, a.position) < std::tie(b.cost.seconds, b.position);
    });
    return ok();
  }

  Result<Choice> choose() {
    auto const chosen = std::find_if(considered_.begin(), considered_.end(), [&](auto const& candidate) {
      return wish_.algorithm == "auto" || wish_.algorithm == candidate.spec.algorithm;
    });
    if (chosen == considered_.end())
      return Error(PlanErrc::unsupported_operation,
                   (wish_.algorithm == "auto" ? "no algorithm does " : wish_.algorithm + " does not do ") +
                       std::string(name(wish_.op)));
    Choice choice{chosen->spec, chosen->cost, reason(static_cast<std::size_t>(chosen - considered_.begin())), {}};
    choice.considered.assign(considered_.begin(), considered_.end());
    return choice;
  }

 private:
  [[nodiscard]] bool fits(Algorithm const& algorithm, Spec const& spec) const {
    if (wish_.shape && algorithm.name != wish_.algorithm) return false;
    if (wish_.uneven && algorithm.equal_chunks != nullptr && algorithm.equal_chunks(spec)) return false;
    if (!wish_.reproducible || !reduces(wish_.op)) return true;
    return algorithm.in_worker_order != nullptr && algorithm.in_worker_order(spec);
  }

  struct Considered : Candidate {
    Algorithm const* algorithm;
    std::size_t position;  // in the order of the catalogue: decides between equals
  };

  [[nodiscard]] bool followed() const { return localities_.size() <= max_followed_ranks; }

  Result<Cost> follow(Algorithm const& algorithm, Spec const& spec) const {
    std::vector<Program> programs;
    programs.reserve(spec.ranks);
    for (Rank rank = 0; rank < spec.ranks; ++rank) {
      auto program = plan::build(algorithm, spec, rank);
      if (program.has_error()) return program.error();
      programs.push_back(std::move(program).value());
    }
    return cost(programs, localities_, elements_, element_bytes_, constants_);
  }

  Result<Cost> approximate(Spec const& spec) const {
    if (auto const status = plan::check(spec); status.has_error()) return status.error();
    auto slowest = Level::host;
    for (auto const& locality : localities_) slowest = std::max(slowest, shared_level(localities_.front(), locality));
    if (auto const cost = estimate(spec, constants_.link(slowest), elements_, element_bytes_, constants_)) return *cost;
    return Error(PlanErrc::unsupported_operation, spec.algorithm + " has no closed formula for its cost");
  }

  [[nodiscard]] std::string predicted(std::size_t at) const {
    return describe(considered_[at].spec, *considered_[at].algorithm) + ": " + duration(considered_[at].cost.seconds);
  }

  [[nodiscard]] std::string reason(std::size_t chosen) const {
    auto const& it = considered_[chosen];
    auto text = describe(it.spec, *it.algorithm);
    if (wish_.algorithm != "auto") {
      text += " was asked for: predicted " + duration(it.cost.seconds);
      text += chosen == 0 ? "; auto would have chosen it too" : "; auto would have chosen " + predicted(0);
      if (chosen == 0 && considered_.size() > 1) text += ", next best " + predicted(1);
    } else {
      text += ": predicted " + duration(it.cost.seconds);
      if (considered_.size() > 1) text += ", next best " + predicted(1);
    }
    if (!followed())
      text += " (closed formulas, as there are more than " + std::to_string(max_followed_ranks) + " ranks)";
    return text;
  }

  Wish const& wish_;
  std::span<Locality const> localities_;
  std::uint64_t elements_;
  std::size_t element_bytes_;
  Constants const& constants_;
  std::vector<Considered> considered_;
};

}  // namespace

Result<Choice> select(Wish const& wish, std::span<Locality const> localities, std::uint64_t elements,
                      std::size_t element_bytes, Constants const& constants) {
  if (localities.empty() || localities.size() > plan::max_ranks)
    return Error(PlanErrc::bad_parameter, "a group has 1.." + std::to_string(plan::max_ranks) + " ranks, not " +
                                              std::to_string(localities.size()));
  if (wish.algorithm != "auto")
    if (auto const known = algorithms::find(wish.algorithm); known.has_error()) return known.error();
  Spec asked{.op = wish.op, .algorithm = wish.algorithm, .ranks = static_cast<std::uint32_t>(localities.size())};
  asked.root = wish.root.value_or(0);
  asked.arity = wish.arity.value_or(2);
  if (auto const status = plan::check(asked); status.has_error()) return status.error();

  Selection selection(wish, localities, elements, element_bytes, constants);
  if (auto const status = selection.consider_all(); status.has_error()) return status.error();
  return selection.choose();
}

}  // namespace chorus::model
