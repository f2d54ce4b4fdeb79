#include "server/planning/algorithm_page.hpp"

#include <array>
#include <cstdio>
#include <map>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/core/assert.hpp"
#include "server/planning/crossover.hpp"
#include "server/planning/measures.hpp"

namespace chorus::planning {
namespace {

constexpr std::array<std::uint32_t, 2> measured_ranks{8, 64};

constexpr auto head = R"(# Algorithms

`chorus algorithms --markdown` prints this page, and a test compares the two. Nothing in it is quoted: steps, bytes and
formulas are counted in the plans themselves, for 8 and 64 ranks with arity 2 and the algorithm's own shape, and who
wins is found by simulating them all.

**n** is the whole vector in bytes: one rank's tensor, or all that is gathered or scattered. **α** is the latency of a
message, **β** the time of a byte on a link, **γ** that of reducing a byte. A rank sends one message at a time and
receives one. *Steps* are rounds in which somebody sends, *sent* what the busiest rank sends. *Short* is the time of
vectors whose messages are one segment each, *long* that of vectors in many segments, which flow through all steps at
once: first the α of the way, then what the busiest port has left. The three terms are each what a plan costs where only
that counts. *Wins* says for which sizes an algorithm is the fastest in simulation with the default constants: `apart`
is one rank per host, `8 per host` eight ranks per host that share its network card and its cores, `one host` all of
them on one.

[Selection](../explanation/selection.md) weighs the same plans with the links of the group at hand: up to 64 ranks by
simulating them, above by folding their rounds. `chorus simulate` shows all of them for any topology, `chorus plan` what
would be chosen and why.

![Which all_reduce is the fastest, ranks on hosts of their own](algorithms/crossover_flat.svg)
![Which all_reduce is the fastest, eight ranks per host](algorithms/crossover_hosts.svg)

Made by `chorus crossover --topology flat --svg FILE` and `chorus crossover --topology hosts:8 --svg FILE`.
)";

struct Placed {
  std::string placement, label;
  std::vector<std::uint32_t> ranks;
};

// For each algorithm the points at which it wins, in words.
class Wins {
 public:
  Wins(Op op, model::Constants const& constants) {
    std::vector<Placed> const places{
        {"flat", "apart", {8, 64}}, {"hosts:8", "8 per host", {64}}, {"host", "one host", {8, 64}}};
    for (auto const& place : places) {
      auto const found = crossover({.op = op, .placement = place.placement, .ranks_max = 64}, constants).value();
      std::map<std::string, std::string> here;
      for (std::size_t column = 0; column < found.ranks.size(); ++column)
        for (auto const ranks : place.ranks)
          if (ranks == found.ranks[column]) add_ranges(found, column, here);
      for (auto const& [algorithm, ranges] : here) {
        auto& words = words_[algorithm];
        words += (words.empty() ? "" : "; ") + place.label + ": " + ranges;
      }
    }
  }

  [[nodiscard]] std::string of(plan::Algorithm const& algorithm) const {
    auto const found = words_.find(std::string(algorithm.name));
    return found == words_.end() ? "" : found->second;
  }

 private:
  static std::string size_text(std::uint64_t bytes) {
    constexpr std::array<std::string_view, 4> units{" B", " KiB", " MiB", " GiB"};
    auto unit = std::size_t{0};
    for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
    return std::to_string(bytes) + std::string(units[unit]);
  }

  static void add_ranges(Crossover const& found, std::size_t column, std::map<std::string, std::string>& here) {
    auto const& winners = found.winners[column];
    std::map<std::string, std::string> ranges;
    for (std::size_t first = 0; first < winners.size();) {
      auto last = first;
      while (last + 1 < winners.size() && winners[last + 1].algorithm == winners[first].algorithm) ++last;
      auto& text = ranges[winners[first].algorithm];
      text += (text.empty() ? "" : ", ") + range_text(found.bytes, first, last);
      first = last + 1;
    }
    for (auto const& [algorithm, text] : ranges) {
      auto& words = here[algorithm];
      words += (words.empty() ? "" : ", ") + ("p=" + std::to_string(found.ranks[column]) + " " + text);
    }
  }

  static std::string range_text(std::vector<std::uint64_t> const& bytes, std::size_t first, std::size_t last) {
    if (first == 0 && last + 1 == bytes.size()) return "always";
    if (first == last) return size_text(bytes[first]);
    if (first == 0) return "to " + size_text(bytes[last]);
    if (last + 1 == bytes.size()) return "from " + size_text(bytes[first]);
    return size_text(bytes[first]) + " to " + size_text(bytes[last]);
  }

  std::map<std::string, std::string> words_;
};

std::string part_of_n(double part) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f n", part);
  return text.data();
}

// A text that holds for both numbers of ranks is written once.
std::string both(std::array<std::string, 2> const& texts) {
  return texts[0] == texts[1] ? texts[0] : texts[0] + "<br>" + texts[1];
}

template <class Text>
std::string cell(std::array<Measure, 2> const& measures, Text text) {
  return " " + both({text(measures[0]), text(measures[1])}) + " |";
}

std::string row(plan::Algorithm const& algorithm, Op op, Wins const& wins) {
  std::array<Measure, 2> measures;
  for (std::size_t i = 0; i < measured_ranks.size(); ++i)
    measures[i] = measure(algorithm, {.op = op, .algorithm = std::string(algorithm.name), .ranks = measured_ranks[i]});
  auto text = "| [" + std::string(algorithm.name) + "](#" + std::string(algorithm.name) + ") |";
  text += cell(measures, [](Measure const& m) { return std::to_string(m.steps); });
  if (op != Op::barrier) text += cell(measures, [](Measure const& m) { return part_of_n(m.sent); });
  text += cell(measures, [](Measure const& m) { return to_text(m.whole); });
  if (op != Op::barrier) text += cell(measures, [](Measure const& m) { return to_text(m.segmented); });
  auto const where = wins.of(algorithm);
  return text + (where.empty() ? " |\n" : " " + where + " |\n");
}

std::string section(Op op, model::Constants const& constants) {
  Wins const wins(op, constants);
  auto text =
      "\n## " + std::string(name(op)) + "\n\nFirst line 8 ranks, second line 64; one line where they agree.\n\n";
  text += op == Op::barrier ? "| algorithm | steps | time | wins |\n|---|---|---|---|\n"
                            : "| algorithm | steps | sent | short | long | wins |\n|---|---|---|---|---|---|\n";
  for (auto const* algorithm : algorithms::all_for(op)) text += row(*algorithm, op, wins);
  return text;
}

std::string operations_of(plan::Algorithm const& algorithm) {
  std::string names;
  for (auto const op : all_ops) {
    plan::Spec const spec{.op = op, .algorithm = std::string(algorithm.name), .ranks = measured_ranks[0]};
    if (algorithm.check(spec).has_error()) continue;
    names += (names.empty() ? "" : ", ") + std::string(name(op));
    if (algorithm.in_worker_order != nullptr && algorithm.in_worker_order(spec) && reduces(op)) names += "*";
  }
  return names;
}

std::string portrait(plan::Algorithm const& algorithm) {
  auto const label = std::string(algorithm.name);
  auto text = "\n### " + label + "\n\n" + std::string(algorithm.summary) + ".\n\nFor " + operations_of(algorithm) + ".";
  if (algorithm.uses_arity) text += " Takes an arity.";
  if (algorithm.shapes != nullptr) text += " Takes a shape.";
  if (algorithm.rooted) text += " Has a root, wherever it reduces.";
  auto const source = std::string(algorithms::room_of(algorithm)) + "/" + label + ".cpp";
  return text + "\n[Source](../../collectives/algorithms/" + source + ").\n\n![" + label + "](algorithms/" + label +
         ".svg)\n";
}

}  // namespace

std::string algorithm_page(model::Constants const& constants) {
  std::string page = head;
  for (auto const op : all_ops) page += section(op, constants);
  page +=
      "\n## The algorithms\n\n"
      "Operations with a star reduce every element at one place in the order of the workers: `reproducible` selects "
      "among\nthese. Pictures are made by `chorus algorithms --pictures DIRECTORY`: time runs to the right, one column "
      "per round, and\nan arrow is as thick as the part of the vector that it carries.\n";
  for (auto const* algorithm : algorithms::all()) page += portrait(*algorithm);
  return page;
}

}  // namespace chorus::planning
