#include "worker/bench/calibration/calibrate.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "collectives/core/assert.hpp"
#include "worker/bench/calibration/codec_rates.hpp"
#include "worker/bench/calibration/measurements.hpp"
#include "worker/bench/ranks/ranks.hpp"
#include "worker/bench/timing/bound_thread.hpp"
#include "worker/devices/reduce.hpp"

namespace chorus::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t ranks_max = 16;
constexpr std::uint64_t single_segment_bytes = 16384;  // up to this size nothing is cut into segments, or waits for a
                                                       // grant

plan::Spec make_spec(Op op, std::string algorithm, std::uint32_t ranks) {
  return {.op = op, .algorithm = std::move(algorithm), .ranks = ranks};
}

// Observes all specs with all sizes, those of one size and operation in turns.
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

// vectors, compared to a core's own caches
constexpr std::uint64_t too_long_for_a_core = 4 << 20, fits_a_core = 256 << 10;

// Seconds per byte of adding a segment that was just received to a vector of this size that was used before.
double measure_gamma(std::uint64_t segment_bytes, std::uint64_t vector_bytes) {
  segment_bytes = std::clamp<std::uint64_t>(segment_bytes, 4096, vector_bytes);
  std::vector<float> const segment(segment_bytes / sizeof(float), 1), operand(vector_bytes / sizeof(float), 2);
  std::vector<float> sum(operand.size());
  auto const add = devices::Reducer(ReduceOp::sum, Dtype::f32);
  auto const bytes_of = [](auto& vector) { return std::as_bytes(std::span(vector)).data(); };
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 9; ++repeat) {
    auto const begin = Clock::now();
    for (std::size_t at = 0; at + segment.size() <= sum.size(); at += segment.size()) {
      std::byte const* const sources[] = {bytes_of(operand) + at * sizeof(float), bytes_of(segment)};
      auto* const result = std::as_writable_bytes(std::span(sum)).data() + at * sizeof(float);
      add.run({sources, 2, &result, 1, segment.size()}, {});
    }
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return *std::min_element(seconds.begin(), seconds.end()) /
         static_cast<double>(vector_bytes);  // the others were disturbed
}

// Seconds from one thread's write until a thread on the same core, which waits in the kernel, has read.
double measure_wake() {
  struct Pipes {
    std::array<int, 2> there{}, back{};
    Pipes() { CHORUS_ASSERT(pipe(there.data()) == 0 && pipe(back.data()) == 0, "there are descriptors"); }
    ~Pipes() {
      for (auto const fd : {there[0], there[1], back[0], back[1]}) close(fd);
    }
  } pipes;
  constexpr int round_trips = 2000;
  auto const pass = [](int from, int to) {
    char byte = 0;
    return read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1;
  };
  std::vector<double> seconds;
  std::thread asker([&] {
    stay_on_core(0);
    for (int i = 0; i < round_trips; ++i) {
      auto const begin = Clock::now();
      char byte = 0;
      if (write(pipes.there[1], &byte, 1) != 1 || read(pipes.back[0], &byte, 1) != 1) return;
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / 2);
    }
  });
  std::thread answerer([&] {
    stay_on_core(0);
    for (int i = 0; i < round_trips && pass(pipes.there[0], pipes.back[1]); ++i) {}
  });
  asker.join();
  answerer.join();
  CHORUS_ASSERT(!seconds.empty(), "pipes carry bytes");
  return percentile(seconds, 0.5);
}

Status measure_pair(Options const& options, std::vector<std::string> const& arguments, Measurements& measurements) {
  auto ranks = Ranks::start(arguments, 2);
  if (ranks.has_error()) return ranks.error();
  auto const there = make_spec(Op::broadcast, "binomial", 2), back = make_spec(Op::all_reduce, "centralized", 2);
  auto const small = observe(*ranks, options, {there, back}, {4, 1024, 4096, single_segment_bytes});
  if (small.has_error()) return small.error();
  auto const large = observe(*ranks, options, {there}, {1 << 16, 1 << 18, 1 << 20});
  if (large.has_error()) return large.error();
  ranks->finish();
  for (auto const* observations : {&*small, &*large})
    for (auto const& seen : *observations) measurements.add_pair(seen);
  return ok();
}

Status measure_group(Options const& options, std::vector<std::string> const& arguments, std::uint32_t count,
                     Measurements& measurements) {
  auto ranks = Ranks::start(arguments, count);
  if (ranks.has_error()) return ranks.error();
  std::vector<plan::Spec> specs;
  for (auto const* algorithm : {"centralized", "tree", "recursive_doubling", "ring", "allpairs"})
    specs.push_back(make_spec(Op::all_reduce, algorithm, count));
  specs.push_back(make_spec(Op::broadcast, "binomial", count));
  specs.push_back(make_spec(Op::all_to_all, "direct", count));
  // Bytes dominate if vectors are longer than the caches, and messages if they are short.
  auto const observations = observe(*ranks, options, specs, {4, 1 << 12, 1 << 14, 1 << 20, 1 << 22, 1 << 23});
  if (observations.has_error()) return observations.error();
  ranks->finish();
  for (auto const& seen : *observations)
    if (auto const added = measurements.add_group(seen); added.has_error()) return added.error();
  return ok();
}

}  // namespace

Result<Calibration> calibrate(Options const& options, std::vector<std::string> const& arguments) {
  Calibration result;
  auto const segment_bytes = options.segment_bytes != 0 ? options.segment_bytes : model::Constants{}.segment_bytes;
  auto const cores = std::max(1u, std::thread::hardware_concurrency());
  auto const gamma = measure_gamma(segment_bytes, too_long_for_a_core);
  result.constants.segment_bytes = segment_bytes;
  result.constants.gamma_s_per_byte = gamma;
  result.constants.cached_gamma_s_per_byte = measure_gamma(segment_bytes, fits_a_core);
  result.constants.codec = measure_codecs(too_long_for_a_core);
  result.constants.host_cores = cores;
  result.constants.wake_s = measure_wake();
  Measurements measurements(gamma, *result.constants.wake_s, cores);
  if (auto const status = measure_pair(options, arguments, measurements); status.has_error()) return status.error();
  for (auto const count : {std::clamp(2 * cores, 4u, ranks_max), std::clamp(4 * cores, 8u, ranks_max)})
    if (auto const status = measure_group(options, arguments, count, measurements); status.has_error())
      return status.error();
  auto const found = measurements.fit();
  result.constants.level.emplace().host = {found.alpha_s, found.beta_s_per_byte};
  result.constants.message_cpu_s = found.message_cpu_s;
  result.constants.byte_cpu_s = found.byte_cpu_s;
  result.found = found;
  return result;
}

}  // namespace chorus::bench
