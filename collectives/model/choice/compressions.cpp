#include "collectives/model/choice/compressions.hpp"

#include <algorithm>
#include <tuple>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/model/choice/readable.hpp"
#include "collectives/plan/sizes/codes.hpp"

namespace chorus::model {
namespace {

std::string why_not(CompressionWish const& wish, Network const& network) {
  if (network.ranks() == 1) return "there is one rank";
  if (network.largest_group(Level::host) == network.ranks()) return "all ranks are on one host";
  if (wish.between() && network.largest_group(*wish.between()) == network.ranks())
    return "all ranks are in one " + std::string(name(*wish.between()));
  return {};
}

std::string described(std::optional<Compression> const& sent) {
  return sent ? "codes of " + to_string(*sent) : std::string("elements");
}

}  // namespace

Alternatives alternatives(std::optional<CompressionWish> const& wish, Dtype dtype,
                          std::span<Locality const> localities) {
  if (!wish) return {{std::nullopt}, {}};
  if (auto const fixed = wish->fixed()) return {{fixed}, {}};
  Alternatives found{{std::nullopt}, why_not(*wish, Network(localities, Constants{}))};
  if (!found.why_only_elements.empty()) return found;
  for (auto const format : all_wire_formats) {
    Compression const compression(format, wish->between());
    if (wish->allowed().has(format) && plan::has_codes(dtype, compression)) found.sent.emplace_back(compression);
  }
  if (found.sent.size() == 1) found.why_only_elements = std::string(name(dtype)) + " has no codes of a format allowed";
  return found;
}

Wish wish_for(Wish wish, std::optional<Compression> const& sent) {
  wish.compression = sent;
  wish.reproducible = wish.reproducible || (sent && !sent->between);
  return wish;
}

void sort_by_cost(std::vector<Sent>& considered) {
  std::ranges::sort(considered, {}, [](Sent const& sent) {
    return std::tuple(sent.choice.model_seconds, sent.compression.has_value(),
                      sent.compression ? sent.compression->format : WireFormat::bf16);
  });
}

std::string reason(std::span<Sent const> sorted, std::string const& why_only_elements) {
  auto const& first = sorted.front();
  auto text = described(first.compression) + ": " + first.choice.reason;
  for (auto const& other : sorted.subspan(1))
    text += "; " + described(other.compression) + ": " + duration(other.choice.model_seconds) + " by " +
            other.choice.spec.algorithm;
  if (!why_only_elements.empty()) text += "; codes are not considered: " + why_only_elements;
  return text;
}

std::string_view algorithm_of_codes(Op op, std::string_view of_elements, std::uint32_t ranks) {
  auto const algorithm = algorithms::find(of_elements);
  if (!reduces(op) || !algorithm) return of_elements;
  plan::Spec const spec{.op = op, .algorithm = std::string(of_elements), .ranks = ranks};
  if ((*algorithm)->in_worker_order != nullptr && (*algorithm)->in_worker_order(spec)) return of_elements;
  return op == Op::all_reduce ? "allpairs" : op == Op::reduce ? "centralized" : "direct";
}

}  // namespace chorus::model
