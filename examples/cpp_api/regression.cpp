// Four processes fit one line: each has its own quarter of the points, and they share nothing but gradients.
//
//   regression COORDINATOR_URL ID     e.g. regression http://127.0.0.1:7070 w0, in a group "training"
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "worker/api/worker.hpp"

namespace {

// y = 3 x - 2 and some noise, other points on every rank.
struct Points {
  explicit Points(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> anywhere(-1, 1);
    std::normal_distribution<float> noise(0, 0.05F);
    for (int i = 0; i < 1000; ++i) {
      x.push_back(anywhere(random));
      y.push_back(3 * x.back() - 2 + noise(random));
    }
  }
  std::vector<float> x, y;
};

int fail(char const* what, chorus::Error const& error) {
  std::fprintf(stderr, "%s: %s\n", what, error.detail.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  chorus::WorkerOptions options;
  options.coordinator = argv[1];
  options.id = argv[2];
  if (auto const* const file = std::getenv("CHORUS_TOKEN_FILE")) options.security.token_file = file;
  auto worker = chorus::Worker::start(options);
  if (worker.has_error()) return fail("start", worker.error());
  auto joined = worker->join("training", std::chrono::steady_clock::now() + std::chrono::seconds(30));
  if (joined.has_error()) return fail("join", joined.error());
  auto& group = *joined;

  Points const points(group.rank());
  auto gradient = worker->allocate<float>(2).value();  // where the others read it without a copy
  std::vector<float> weights{0, 0};                    // slope, offset
  for (int step = 0; step < 300; ++step) {
    gradient[0] = gradient[1] = 0;
    for (std::size_t i = 0; i < points.x.size(); ++i) {
      float const error = weights[0] * points.x[i] + weights[1] - points.y[i];
      gradient[0] += 2 * error * points.x[i] / 1000;
      gradient[1] += 2 * error / 1000;
    }
    if (auto const status = group.all_reduce(gradient, {.reduce = chorus::ReduceOp::avg}); status.has_error())
      return fail("all_reduce", status.error());
    for (std::size_t k = 0; k < 2; ++k) weights[k] -= 0.2F * gradient[k];
  }

  // All have the same weights, bit for bit, and nearly those that the points came from.
  std::vector<float> all(2 * group.size());
  if (auto const status = group.all_gather(weights, all); status.has_error()) return fail("all_gather", status.error());
  bool right = std::fabs(weights[0] - 3) < 0.02F && std::fabs(weights[1] + 2) < 0.02F;
  for (std::size_t i = 0; i < all.size(); ++i) right = right && all[i] == weights[i % 2];
  std::printf("rank %u of %u over %s: y = %.3f x %+.3f, %s\n", group.rank(), group.size(), group.path().c_str(),
              static_cast<double>(weights[0]), static_cast<double>(weights[1]), right ? "right" : "WRONG");
  auto const status = group.barrier();  // nobody leaves before all are done
  return right && status.has_value() ? 0 : 1;
}
