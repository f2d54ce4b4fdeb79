// looping_member COORDINATOR ID: a member of group "g" that calls all_reduce until a call fails, or its process is
// killed.
#include <cstdio>
#include <vector>

#include "worker/api/worker.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  chorus::WorkerOptions options;
  options.coordinator = argv[1];
  options.id = argv[2];
  options.log_level = "off";
  auto worker = chorus::Worker::start(options).value();
  auto group = worker.join("g", std::chrono::steady_clock::now() + std::chrono::seconds(60)).value();
  std::vector<float> x(10000, 1);
  for (bool is_first = true; group.all_reduce(x, {.reduce = chorus::ReduceOp::max, .algorithm = "ring"}).has_value();
       is_first = false) {
    if (!is_first) continue;
    std::puts("calling");
    std::fflush(stdout);
  }
  return 1;
}
