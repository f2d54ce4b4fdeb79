#include "worker/bench/calibration/measurements.hpp"

#include <algorithm>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/model/time/simulate.hpp"
#include "worker/bench/calibration/traffic.hpp"
#include "worker/bench/timing/fit.hpp"

namespace chorus::bench {
namespace {

// Number of messages that wait for each other in a row, according to the model.
double depth_of(plan::Spec const& spec, Task const& task) {
  std::vector<Locality> const one_host(spec.ranks, Locality{"", "", "", "localhost"});
  model::Constants steps;
  steps.level[static_cast<std::size_t>(Level::host)].alpha_s = 1;
  model::Network const network(one_host, steps);
  auto const algorithm = algorithms::find(spec.algorithm).value();
  return model::simulate(*algorithm, spec, network, task.elements, element_bytes(task.dtype)).cost.seconds;
}

// Elapsed time counts for short vectors only: their time is latency, and short enough to fit between two time slices of
// other processes, which is why the fast iterations are taken. CPU time always counts.
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
  if (ranks <= cores_ || seen.task.bytes() > short_bytes) return ok();  // few ranks do not wait for cores
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
