#include "server/coordinator/topology/compression_table.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/model/choice/candidates.hpp"
#include "collectives/model/choice/compressions.hpp"
#include "collectives/model/choice/readable.hpp"
#include "collectives/model/choice/select.hpp"
#include "collectives/model/codec.hpp"
#include "collectives/plan/sizes/codes.hpp"

namespace chorus::coordinator {
namespace {

constexpr std::uint64_t sampled_from_bytes = 4 << 10;
constexpr std::uint64_t sampled_up_to_bytes = std::uint64_t{1} << 32;
constexpr std::uint64_t sampled_step = 16;

struct Format {
  WireFormat format;
  double seconds;
};

// The calls that a line is about.
struct Subject {
  Op op;
  Dtype dtype;  // f32 or f16, which stands for bf16, too
  std::optional<Level> between;
};

class Pricing {
 public:
  Pricing(model::Network const& network, std::span<api::Selection const> selection)
      : network_(network), selection_(selection) {}

  [[nodiscard]] double elements_s(Subject const& of, std::uint64_t bytes) const {
    return seconds(spec_for(of.op, bytes), network_, bytes, 1);
  }

  [[nodiscard]] double codes_s(Subject const& of, WireFormat format, std::uint64_t bytes) const {
    auto const elements = bytes / element_bytes(of.dtype);
    if (of.between) return between_s(*of.between, format, elements);
    auto spec = spec_for(of.op, bytes);
    auto const algorithm = model::algorithm_of_codes(of.op, spec.algorithm, spec.ranks);
    if (algorithm != spec.algorithm) spec = {.op = of.op, .algorithm = std::string(algorithm), .ranks = spec.ranks};
    auto const carriers = plan::carriers_of(format, of.op, network_.ranks(), {elements, {}, {}});
    model::Network const of_codes(network_.localities(), model::of_codes(network_.constants(), format),
                                  network_.links());
    return seconds(spec, of_codes, carriers, element_bytes(carrier_of(format))) +
           model::conversion_s(network_, format, of.op, carriers);
  }

 private:
  [[nodiscard]] plan::Spec spec_for(Op op, std::uint64_t bytes) const {
    auto const line = std::ranges::find_if(selection_, [&](api::Selection const& each) {
      return each.op == name(op) && (!each.max_bytes || bytes <= *each.max_bytes);
    });
    return {.op = op,
            .algorithm = line->algorithm,
            .ranks = network_.ranks(),
            .root = line->root,
            .arity = line->arity,
            .shape = line->algorithm_shape};
  }
  [[nodiscard]] double between_s(Level level, WireFormat format, std::uint64_t elements) const {
    plan::Spec const spec{.op = Op::all_reduce,
                          .algorithm = std::string(algorithms::grouped_allpairs.name),
                          .ranks = network_.ranks(),
                          .shape = *model::shape_between(level, network_)};
    return seconds(spec, network_, elements, sizeof(float), format);
  }
  static double seconds(plan::Spec const& spec, model::Network const& network, std::uint64_t elements,
                        std::size_t element_bytes, std::optional<WireFormat> codes = std::nullopt) {
    return model::price(*algorithms::find(spec.algorithm).value(), spec, network, elements, element_bytes, codes)
        .seconds;
  }

  model::Network const& network_;
  std::span<api::Selection const> selection_;
};

api::CompressionSelection line_for(Pricing const& pricing, Subject const& of, std::uint64_t bytes) {
  auto const elements_s = pricing.elements_s(of, bytes);
  std::vector<Format> formats;
  for (auto const format : all_wire_formats)
    if (plan::has_codes(of.dtype, Compression(format, of.between)))
      formats.push_back({format, pricing.codes_s(of, format, bytes)});
  std::ranges::sort(formats, {}, [](Format const& each) { return std::pair(each.seconds, each.format); });
  api::CompressionSelection line;
  line.op = name(of.op);
  if (of.between) line.between = name(*of.between);
  line.element_bytes = static_cast<std::uint32_t>(element_bytes(of.dtype));
  line.max_bytes = bytes;
  line.reason = "at " + std::to_string(bytes) + " bytes elements " + model::duration(elements_s);
  for (auto const& [format, seconds] : formats) {
    line.reason += ", " + std::string(name(format)) + " " + model::duration(seconds);
    if (seconds < elements_s) line.formats.emplace_back(name(format));
  }
  return line;
}

void add_lines(Pricing const& pricing, Subject const& of, std::vector<api::CompressionSelection>& table) {
  auto const first = table.size();
  for (auto bytes = sampled_from_bytes; bytes <= sampled_up_to_bytes; bytes *= sampled_step) {
    auto line = line_for(pricing, of, bytes);
    if (table.size() > first && table.back().formats == line.formats)
      table.back() = std::move(line);
    else
      table.push_back(std::move(line));
  }
  table.back().max_bytes.reset();
}

}  // namespace

std::vector<api::CompressionSelection> compression_table(model::Network const& network,
                                                         std::span<api::Selection const> selection) {
  std::vector<api::CompressionSelection> table;
  if (network.largest_group(Level::host) == network.ranks()) return table;
  Pricing const pricing(network, selection);
  for (auto const op : all_ops)
    for (auto const dtype : {Dtype::f32, Dtype::f16})
      if (can_be_compressed(op)) add_lines(pricing, {op, dtype, {}}, table);
  for (auto const level : levels_between)
    if (model::coded_level(Compression(WireFormat::bf16, level), network) && model::shape_between(level, network))
      add_lines(pricing, {Op::all_reduce, Dtype::f32, level}, table);
  return table;
}

}  // namespace chorus::coordinator
