// looping_member COORDINATOR ID ALGORITHM [CALLS]: a member of group "g" that calls all_reduce by this algorithm until
// a call fails or its process is killed. After CALLS calls the program waits to be killed.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "worker/api/worker.hpp"

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  chorus::WorkerOptions options;
  options.coordinator = argv[1];
  options.id = argv[2];
  options.log_level = "off";
  auto worker = chorus::Worker::start(options).value();
  auto group = worker.join("g", std::chrono::steady_clock::now() + std::chrono::seconds(60)).value();
  std::vector<float> x(10000, 1);
  chorus::CollectiveOptions const max{.reduce = chorus::ReduceOp::max, .algorithm = argv[3]};
  auto const calls = argc == 5 ? std::strtoul(argv[4], nullptr, 10) : 0;
  auto const say = [](char const* word) {
    std::puts(word);
    std::fflush(stdout);
  };
  for (unsigned long call = 1; group.all_reduce(x, max).has_value(); ++call) {
    if (call == 1) say("calling");
    if (call != calls) continue;
    say("resting");
    pause();
  }
  return 1;
}
