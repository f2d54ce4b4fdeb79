#include "server/coordinator/topology/standing.hpp"

#include <algorithm>
#include <limits>

#include "collectives/topology/link_matrix.hpp"

namespace chorus::coordinator {
namespace {

using topology::Link;
using topology::LinkMatrix;

// Time to switch from one process to the next on a GPU without MPS, including the message between them; measured on an
// H200 (docs/guides/gpu.md).
constexpr double turn_s = 140e-6;
constexpr double words_per_sum = 3;  // words that a GPU's memory reads and writes for one word of two operands

Link link_of(model::LinkCost const& cost) { return {cost.alpha_s, 1e-9 / cost.beta_s_per_byte}; }

// Limits a link to plausible values.
Link possible(Link const& link) {
  return {
      std::clamp(link.latency_s, 0.0, topology::max_latency_s),
      std::clamp(link.bandwidth_gbyte_per_s, topology::min_bandwidth_gbyte_per_s, topology::max_bandwidth_gbyte_per_s)};
}

Link slower_of(Link const& a, Link const& b) {
  return {std::max(a.latency_s, b.latency_s), std::min(a.bandwidth_gbyte_per_s, b.bandwidth_gbyte_per_s)};
}

class MatrixInTheMaking {
 public:
  explicit MatrixInTheMaking(std::size_t size)
      : gbyte_per_s_(size, std::vector<double>(size)), seconds_(gbyte_per_s_) {}

  void set(std::size_t a, std::size_t b, Link const& wished) {
    auto const link = possible(wished);
    gbyte_per_s_[a][b] = gbyte_per_s_[b][a] = link.bandwidth_gbyte_per_s;
    seconds_[a][b] = seconds_[b][a] = link.latency_s;
  }
  void set_rate(std::size_t a, std::size_t b, double gbyte_per_s) { set(a, b, {seconds_[a][b], gbyte_per_s}); }
  [[nodiscard]] LinkMatrix made() const { return LinkMatrix::make(gbyte_per_s_, seconds_).value(); }

 private:
  LinkMatrix::Rows gbyte_per_s_, seconds_;
};

LinkMatrix matrix_of(PairLinks const& pairs, GpuWays const& gpus, std::span<Locality const> localities,
                     model::Constants const& constants) {
  auto const within_host = link_of(constants.link(Level::host));
  Link slowest{0, std::numeric_limits<double>::infinity()};
  std::vector<Link> measured;
  for (auto const& pair : pairs) {
    measured.push_back({within_host.latency_s + pair.latency_s, pair.bytes_per_s * 1e-9});
    slowest = slower_of(slowest, measured.back());
  }
  MatrixInTheMaking matrix(localities.size());
  for (std::size_t a = 0; a < localities.size(); ++a)
    for (auto b = a + 1; b < localities.size(); ++b)
      matrix.set(a, b, pairs.empty() ? link_of(constants.link(shared_level(localities[a], localities[b]))) : slowest);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    auto link = measured[i];
    if (shared_level(localities[pairs[i].a], localities[pairs[i].b]) == Level::host)
      link.bandwidth_gbyte_per_s = std::max(link.bandwidth_gbyte_per_s, within_host.bandwidth_gbyte_per_s);
    matrix.set(pairs[i].a, pairs[i].b, link);
  }
  for (auto const& way : gpus.pairs) matrix.set_rate(way.a, way.b, way.gbyte_per_s);
  return matrix.made();
}

// Replaces both ends of each pair by place[end].
template <class Pairs>
Pairs in_places(Pairs pairs, std::span<std::uint32_t const> place) {
  for (auto& pair : pairs) pair.a = place[pair.a], pair.b = place[pair.b];
  return pairs;
}

}  // namespace

Standing in_order(Standing const& members, std::span<std::uint32_t const> order) {
  Standing ordered;
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t now = 0; now < order.size(); ++now) {
    ordered.localities.push_back(members.localities[order[now]]);
    place[order[now]] = now;
  }
  if (members.pairs) ordered.pairs = std::make_shared<PairLinks const>(in_places(*members.pairs, place));
  if (members.gpus)
    ordered.gpus = std::make_shared<GpuWays const>(
        GpuWays{in_places(members.gpus->pairs, place), members.gpus->memory_gbyte_per_s, members.gpus->are_one});
  return ordered;
}

planning::Place place_of(Standing in_rank_order, model::Constants const& constants) {
  planning::Place place{{}, constants, std::nullopt, std::nullopt, std::move(in_rank_order.by_position)};
  if (!place.by_position.empty()) in_rank_order = in_order(in_rank_order, place.by_position);
  place.shape.localities = std::move(in_rank_order.localities);
  auto const gpus = in_rank_order.gpus ? *in_rank_order.gpus : GpuWays();
  if (in_rank_order.pairs)
    planning::cost_by(matrix_of(*in_rank_order.pairs, gpus, place.shape.localities, constants), place);
  else if (!gpus.pairs.empty())
    place.links = matrix_of({}, gpus, place.shape.localities, constants);  // the uplinks are those without GPUs
  auto const& places = place.shape.localities;
  bool const is_one_host =
      std::ranges::all_of(places, [&](auto const& at) { return shared_level(at, places.front()) == Level::host; });
  // The extra memory of a plan is then in the arenas of the GPUs, not in the memory of the workers.
  if (gpus.memory_gbyte_per_s > 0) place.constants.extra_bytes_max = std::numeric_limits<std::uint64_t>::max();
  if (is_one_host && gpus.memory_gbyte_per_s > 0) {
    auto const word_s_per_byte = 1e-9 / gpus.memory_gbyte_per_s;
    place.constants.byte_cpu_s = 0;
    place.constants.gamma_s_per_byte = words_per_sum * word_s_per_byte;
    place.constants.cache_bytes = 0;
    if (gpus.are_one) {
      // The GPU is modelled as the only core of the host: it reads and writes the data of a message, and reads one word
      // more for a sum.
      place.constants.host_cores = 1;
      place.constants.byte_cpu_s = word_s_per_byte;
      place.constants.gamma_s_per_byte = word_s_per_byte;
      place.constants.message_cpu_s = turn_s / 2;
      place.constants.wake_s = 0;
    }
  }
  return place;
}

}  // namespace chorus::coordinator
