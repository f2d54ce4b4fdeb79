#include "collectives/model/choice/select.hpp"

#include <algorithm>
#include <tuple>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/model/choice/readable.hpp"
#include "collectives/model/codec.hpp"
#include "collectives/model/extra_memory.hpp"
#include "collectives/model/time/fold.hpp"
#include "collectives/model/time/simulate.hpp"

namespace chorus::model {
namespace {

using plan::Algorithm, plan::Spec;

// Returns text like "tree arity 2 root 0".
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

class Selection {
 public:
  Selection(Wish const& wish, Network const& network, std::uint64_t elements, std::size_t element_bytes)
      : wish_(wish),
        network_(network),
        candidates_(wish, network),
        elements_(elements),
        element_bytes_(element_bytes) {}

  void consider_all() {
    for (auto const* algorithm : algorithms::all())
      for (auto& spec : candidates_.of(*algorithm)) {
        auto const predicted = cost(*algorithm, spec);
        considered_.push_back({{std::move(spec), predicted}, algorithm, considered_.size()});
      }
    std::sort(considered_.begin(), considered_.end(), [](auto const& a, auto const& b) {
      return std::tie(a.cost.seconds, a.position) < std::tie(b.cost.seconds, b.position);
    });
  }

  Result<Choice> choose() {
    if (wish_.algorithm == "auto") leave_out_what_takes_much();
    auto const chosen = wish_.algorithm == "auto" ? favourite() : cheapest_asked_for();
    if (chosen == considered_.end()) {
      auto const asked = algorithms::find(wish_.algorithm);
      return asked.has_value() ? candidates_.refusal(*asked.value()) : candidates_.refusal();
    }
    Choice choice{chosen->spec, chosen->cost, reason(chosen), {}, chosen->cost.seconds};
    choice.considered.assign(considered_.begin(), considered_.end());
    return choice;
  }

 private:
  struct Considered : Candidate {
    Algorithm const* algorithm;
    std::size_t position;  // in the order of the catalogue: decides between equals
  };

  using Position = std::vector<Considered>::const_iterator;

  [[nodiscard]] Position cheapest_asked_for() const {
    return std::ranges::find(considered_, wish_.algorithm,
                             [](auto const& candidate) { return candidate.spec.algorithm; });
  }

  [[nodiscard]] Position favourite() const {
    bool const is_one_host = network_.largest_group(Level::host) == network_.ranks();
    if (considered_.empty() || !is_one_host) return considered_.begin();
    if (takes_turns()) return evenly_busy(end_within(too_crowded_to_tell));
    if (network_.is_crowded()) return considered_.begin();
    return std::min_element(considered_.begin(), end_within(too_close_to_tell),
                            [](auto const& a, auto const& b) { return a.cost.rounds < b.cost.rounds; });
  }

  void leave_out_what_takes_much() {
    auto const vector_bytes = elements_ * element_bytes_, most = network_.constants().extra_bytes_max;
    if (vector_bytes <= most / extra_vectors_max) return;
    auto const takes_much = [&](Considered const& it) {
      return extra_bytes(*it.algorithm, it.spec, vector_bytes) > most;
    };
    if (!std::ranges::all_of(considered_, takes_much)) std::erase_if(considered_, takes_much);
  }

  [[nodiscard]] Position evenly_busy(Position end) const {
    bool const halves = network_.ranks() <= halving_doubling_ranks_max;
    auto const* const name = halves ? "halving_doubling" : "double_tree";
    auto const found =
        std::find_if(considered_.begin(), end, [&](auto const& it) { return it.spec.algorithm == name; });
    return found == end ? considered_.begin() : found;
  }

  [[nodiscard]] bool takes_turns() const {
    bool const is_long = elements_ * element_bytes_ >= crowded_bytes / network_.ranks();
    return wish_.op == Op::all_reduce && network_.wake_s() > 0 && is_long;
  }

  [[nodiscard]] Position end_within(double part) const {
    auto const limit_s = considered_.front().cost.seconds * (1 + part);
    return std::ranges::find_if(considered_, [&](auto const& candidate) { return candidate.cost.seconds > limit_s; });
  }

  [[nodiscard]] bool simulated() const { return network_.ranks() <= max_simulated_ranks; }

  [[nodiscard]] Cost cost(Algorithm const& algorithm, Spec const& spec) const {
    auto const codes =
        coded_level(wish_.compression, network_) ? std::optional(wish_.compression->format) : std::nullopt;
    auto predicted = price(algorithm, spec, network_, elements_, element_bytes_, codes);
    if (wish_.compression && !wish_.compression->between)
      predicted.seconds += conversion_s(network_, wish_.compression->format, wish_.op, elements_);
    return predicted;
  }

  [[nodiscard]] std::string described(Considered const& it) const {
    auto spec = it.spec;
    if (!wish_.names.empty()) spec.root = wish_.names[spec.root];
    return describe(spec, *it.algorithm);
  }

  [[nodiscard]] std::string predicted(Considered const& it) const {
    return described(it) + ": " + duration(it.cost.seconds);
  }

  // Returns text that compares the choice of auto with the cheapest other plan.
  [[nodiscard]] std::string beside_next(Position favourite) const {
    if (considered_.size() == 1) return {};
    auto const cheapest = considered_.begin();
    if (favourite == cheapest) return ", next best " + predicted(*std::next(cheapest));
    auto const by_what = [this](Considered const& it) {
      if (takes_turns()) return " with " + std::to_string(it.cost.bytes_per_rank) + " bytes from the busiest rank";
      return " in " + std::to_string(it.cost.rounds) + (it.cost.rounds == 1 ? " round" : " rounds");
    };
    return by_what(*favourite) + "; " + predicted(*cheapest) + by_what(*cheapest) + " is too close to tell";
  }

  [[nodiscard]] std::string reason(Position chosen) const {
    auto text = described(*chosen);
    bool const is_auto = wish_.algorithm == "auto";
    text += (is_auto ? ": predicted " : " was asked for: predicted ") + duration(chosen->cost.seconds);
    auto const best = favourite();
    if (!is_auto) text += "; auto would have chosen " + (chosen == best ? "it too" : predicted(*best));
    if (chosen == best) text += beside_next(chosen);
    if (!simulated()) text += " (folded, as there are more than " + std::to_string(max_simulated_ranks) + " ranks)";
    return text;
  }

  Wish const& wish_;
  Network const& network_;
  Candidates candidates_;
  std::uint64_t elements_;
  std::size_t element_bytes_;
  std::vector<Considered> considered_;
};

}  // namespace

Cost price(Algorithm const& algorithm, Spec const& spec, Network const& network, std::uint64_t elements,
           std::size_t element_bytes, std::optional<WireFormat> codes) {
  if (network.ranks() <= max_simulated_ranks)
    return simulate(algorithm, spec, network, elements, element_bytes, codes).cost;
  return fold(algorithm, spec, network, elements, element_bytes, folded_instructions_max, codes);
}

Result<Choice> select(Wish const& wish, std::span<Locality const> localities, std::uint64_t elements,
                      std::size_t element_bytes, Constants const& constants) {
  if (localities.empty() || localities.size() > plan::max_ranks)
    return Error(PlanErrc::bad_parameter, "a group has 1.." + std::to_string(plan::max_ranks) + " ranks, not " +
                                              std::to_string(localities.size()));
  return select(wish, Network(localities, constants), elements, element_bytes);
}

Result<Choice> select(Wish const& wish, Network const& network, std::uint64_t elements, std::size_t element_bytes) {
  if (wish.algorithm != "auto")
    if (auto const known = algorithms::find(wish.algorithm); known.has_error()) return known.error();
  Spec asked{.op = wish.op, .algorithm = wish.algorithm, .ranks = network.ranks()};
  asked.root = wish.root.value_or(0);
  asked.arity = wish.arity.value_or(2);
  if (auto const status = plan::check(asked); status.has_error()) return status.error();

  auto const choose = [&](Network const& of_run) {
    Selection selection(wish, of_run, elements, element_bytes);
    selection.consider_all();
    return selection.choose();
  };
  if (!wish.compression || wish.compression->between) return choose(network);
  return choose(
      Network(network.localities(), of_codes(network.constants(), wish.compression->format), network.links()));
}

}  // namespace chorus::model
