#include "worker/bench/calibrate.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "worker/bench/fit.hpp"
#include "worker/bench/ranks.hpp"
#include "worker/bench/traffic.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t ranks_max = 16;
constexpr std::uint64_t single_segment_bytes = 16384;  // up to here nothing is cut into segments, or waits for a grant

// One way to do something, and what came out.
struct Observation {
  plan::Spec spec;
  Task task;
  Sample sample;
};

plan::Spec make_spec(Op op, std::string algorithm, std::uint32_t ranks) {
  return {.op = op, .algorithm = std::move(algorithm), .ranks = ranks};
}

// All specs with all sizes, those of one size and operation in turns.
Result<std::vector<Observation>> observe(Ranks& ranks, Options const& options, std::vector<plan::Spec> const& specs,
                                         std::vector<std::uint64_t> const& sizes) {
  Pace pace;
  pace.seconds = options.seconds / 2;
  pace.turns_min = 5;
  pace.iterations_max = options.iterations_max;
  std::vector<Observation> observations;
  for (auto const bytes : sizes)
    for (auto const op : all_ops) {
      std::vector<plan::Spec> same_op;
      std::copy_if(specs.begin(), specs.end(), std::back_inserter(same_op), [&](auto& spec) { return spec.op == op; });
      if (same_op.empty()) continue;
      auto const task = make_task(op, Dtype::f32, bytes, ranks.size(), 0);
      if (auto const status = ranks.prepare(task); status.has_error()) return status.error();
      auto samples = contest(same_op.size(), pace, [&](std::size_t contender, std::uint64_t iterations) {
        return ranks.iterate(same_op[contender], iterations);
      });
      if (samples.has_error()) return samples.error();
      for (std::size_t i = 0; i < same_op.size(); ++i)
        observations.push_back({same_op[i], task, std::move((*samples)[i])});
    }
  return observations;
}

// Seconds per byte of a segment that was just received, added to a vector that is too long for the cache.
double measure_gamma(std::uint64_t segment_bytes) {
  constexpr std::uint64_t vector_bytes = 64 << 20;
  std::vector<float> const segment(segment_bytes / sizeof(float), 1), operand(vector_bytes / sizeof(float), 2);
  std::vector<float> sum(operand.size());
  auto const add = devices::find_combine(ReduceOp::sum, Dtype::f32);
  auto const bytes_of = [](auto& vector) { return std::as_bytes(std::span(vector)).data(); };
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 9; ++repeat) {
    auto const begin = Clock::now();
    for (std::size_t at = 0; at + segment.size() <= sum.size(); at += segment.size())
      add(std::as_writable_bytes(std::span(sum)).data() + at * sizeof(float), bytes_of(operand) + at * sizeof(float),
          bytes_of(segment), segment.size());
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return median(seconds) / vector_bytes;
}

// call + messages that wait for each other * alpha + bytes on that way * beta: a broadcast to the other rank is one
// message, a centralized all_reduce two.
Status calibrate_link(Options const& options, std::vector<std::string> const& arguments, Calibration& result) {
  auto ranks = Ranks::start(arguments, 2);
  if (ranks.has_error()) return ranks.error();
  auto const there = make_spec(Op::broadcast, "binomial", 2), back = make_spec(Op::all_reduce, "centralized", 2);
  auto const small = observe(*ranks, options, {there, back}, {4, 1024, 4096, single_segment_bytes});
  if (small.has_error()) return small.error();
  auto const large = observe(*ranks, options, {there}, {1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24});
  if (large.has_error()) return large.error();
  ranks->finish();

  std::vector<Equation> equations;
  auto const gamma = result.constants.gamma_s_per_byte.value();
  for (auto const* observations : {&*small, &*large})
    for (auto const& [spec, task, sample] : *observations) {
      auto const bytes = static_cast<double>(task.bytes());
      auto const messages = spec.op == Op::broadcast ? 1.0 : 2.0;
      auto const reduced = spec.op == Op::broadcast ? 0.0 : bytes;
      equations.push_back({{1, messages, messages * bytes}, median(sample.seconds) - reduced * gamma});
    }
  auto const x = least_squares(equations);
  result.call_s = x[0];
  result.constants.level.emplace().host = {x[1], x[2]};
  result.link_error = median_error(equations, x);
  return ok();
}

// ranks * call + both ends of every channel * channel_cpu + both ends of every message * message_cpu + both ends of
// every byte * byte_cpu + reductions.
Status calibrate_cpu(Options const& options, std::vector<std::string> const& arguments, Calibration& result) {
  auto const cores = static_cast<std::uint32_t>(result.constants.host_cores.value());
  std::vector<Equation> equations;
  for (auto const count : {std::clamp(2 * cores, 4u, ranks_max), std::clamp(4 * cores, 8u, ranks_max)}) {
    auto ranks = Ranks::start(arguments, count);
    if (ranks.has_error()) return ranks.error();
    std::vector<plan::Spec> specs;
    for (auto const* algorithm : {"centralized", "tree", "recursive_doubling", "ring", "allpairs"})
      specs.push_back(make_spec(Op::all_reduce, algorithm, count));
    specs.push_back(make_spec(Op::broadcast, "binomial", count));
    specs.push_back(make_spec(Op::all_to_all, "direct", count));
    auto const observations = observe(*ranks, options, specs, {4, 1 << 14, 1 << 18, 1 << 21});
    if (observations.has_error()) return observations.error();
    ranks->finish();
    for (auto const& [spec, task, sample] : *observations) {
      auto const traffic = traffic_of(spec, task);
      if (traffic.has_error()) return traffic.error();
      auto const reductions_s = static_cast<double>(traffic->reduced_bytes) * result.constants.gamma_s_per_byte.value();
      equations.push_back({{double(count), 2.0 * double(traffic->channels), 2.0 * double(traffic->messages),
                            2.0 * double(traffic->bytes)},
                           sample.cpu_seconds / double(sample.seconds.size()) - reductions_s});
    }
  }
  std::erase_if(equations, [](Equation const& equation) { return equation.value <= 0; });
  auto const x = least_squares(equations);
  result.call_cpu_s = x[0];
  result.channel_cpu_s = x[1];
  result.constants.message_cpu_s = x[2];
  result.constants.byte_cpu_s = x[3];
  result.cpu_error = median_error(equations, x);
  return ok();
}

}  // namespace

Result<Calibration> calibrate(Options const& options, std::vector<std::string> const& arguments) {
  Calibration result;
  auto const segment_bytes = options.segment_bytes != 0 ? options.segment_bytes : model::Constants{}.segment_bytes;
  result.constants.segment_bytes = segment_bytes;
  result.constants.gamma_s_per_byte = measure_gamma(std::clamp<std::uint64_t>(segment_bytes, 4096, 16 << 20));
  result.constants.host_cores = std::max(1u, std::thread::hardware_concurrency());
  if (auto const status = calibrate_link(options, arguments, result); status.has_error()) return status.error();
  if (auto const status = calibrate_cpu(options, arguments, result); status.has_error()) return status.error();
  return result;
}

}  // namespace chorus::bench
