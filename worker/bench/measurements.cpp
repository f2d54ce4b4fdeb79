#include "worker/bench/measurements.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/model/simulate.hpp"
#include "worker/bench/fit.hpp"
#include "worker/bench/traffic.hpp"

namespace chorus::bench {
namespace {

// How many messages wait for each other, one after the other, as the model sees it.
double depth_of(plan::Spec const& spec, Task const& task) {
  std::vector<Locality> const one_host(spec.ranks, Locality{"", "", "", "localhost"});
  model::Constants steps;
  steps.level[static_cast<std::size_t>(Level::host)].alpha_s = 1;
  model::Network const network(one_host, steps);
  auto const algorithm = algorithms::find(spec.algorithm).value();
  return model::simulate(*algorithm, spec, network, task.elements, element_bytes(task.dtype)).cost.seconds;
}

// The time that passes counts for short vectors only: there it is latencies, and short enough to come through between
// two time slices of whatever else the machine does, which is why the fast iterations are taken. CPU time is what it
// is.
constexpr std::uint64_t short_bytes = 65536;
double undisturbed(Sample const& sample) { return percentile(sample.seconds, 0.1); }

}  // namespace

void Measurements::add_pair(Observation const& seen) {
  auto const messages = seen.spec.op == Op::broadcast ? 1.0 : 2.0;
  auto const bytes = static_cast<double>(seen.task.bytes());
  Line line;
  line.coefficients[alpha] = messages;
  line.coefficients[beta] = messages * bytes;
  line.call_of = 2;
  line.seconds = undisturbed(seen.sample) - (messages - 1) * bytes * gamma_;
  add(line);
}

Status Measurements::add_group(Observation const& seen) {
  auto const traffic = traffic_of(seen.spec, seen.task);
  if (traffic.has_error()) return traffic.error();
  auto const reductions_s = static_cast<double>(traffic->reduced_bytes) * gamma_;
  auto const ranks = seen.spec.ranks;
  Line work;
  auto const wakes_s = ranks > cores_ ? static_cast<double>(traffic->wakes) * wake_s_ : 0;
  work.coefficients[message_cpu] = 2 * static_cast<double>(traffic->messages);
  work.coefficients[byte_cpu] = 2 * static_cast<double>(traffic->bytes);
  auto line = work;
  line.coefficients[call_cpu] = ranks;
  line.seconds = seen.sample.cpu_seconds / static_cast<double>(seen.sample.seconds.size()) - reductions_s - wakes_s;
  add(line);
  if (ranks <= cores_ || seen.task.bytes() > short_bytes) return ok();  // of few ranks nobody waits for a core
  for (auto& coefficient : work.coefficients) coefficient /= cores_;
  auto const depth = depth_of(seen.spec, seen.task);
  work.coefficients[alpha] = depth;
  work.call_of = ranks;
  work.seconds = undisturbed(seen.sample) - (reductions_s + wakes_s) / cores_ - depth * wake_s_;
  add(work);
  return ok();
}

void Measurements::add(Line line) {
  if (line.seconds > 0) lines_.push_back(line);
}

Found Measurements::fit() const {
  std::vector<std::uint32_t> calls;
  for (auto const& line : lines_)
    if (line.call_of != 0 && std::find(calls.begin(), calls.end(), line.call_of) == calls.end())
      calls.push_back(line.call_of);
  std::vector<Equation> equations;
  for (auto const& line : lines_) {
    Equation equation{{line.coefficients.begin(), line.coefficients.end()}, line.seconds};
    for (auto const ranks : calls) equation.coefficients.push_back(ranks == line.call_of ? 1 : 0);
    equations.push_back(std::move(equation));
  }
  auto const x = least_squares(equations);
  return {x[alpha], x[beta], x[message_cpu], x[byte_cpu], x[call_cpu], median_error(equations, x)};
}

}  // namespace chorus::bench
