// Asks services every 5 ms whether they live, and reports the longest time in which they could not answer.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/fleets/cluster.hpp"

namespace chorus::testing {

// What a thread has done with its time so far.
struct ThreadTimes {
  std::chrono::nanoseconds ran{0};     // had a processor, in the kernel too; not what a hypervisor has taken from it
  std::chrono::nanoseconds waited{0};  // was runnable and had none, which is due to the load of the machine
};
ThreadTimes times_of(pid_t process, pid_t thread);

// Two measures of answers. `held_up` leaves out the time that the service's control thread and the asking thread waited
// for a processor: a loaded machine therefore makes no answer longer, but a thread that computes, is in the kernel or
// waits for a lock does, and so does a virtual machine that stands still. `computed` is what the control thread ran
// while one answer was awaited: only its own work makes that longer.
class Liveness {
 public:
  explicit Liveness(std::vector<Service const*> services);
  ~Liveness();
  Liveness(Liveness const&) = delete;
  Liveness& operator=(Liveness const&) = delete;

  struct Longest {
    std::string service;
    std::chrono::microseconds held_up{0};
    std::chrono::microseconds waited{0};  // elapsed time
    std::string during;                   // what the test was doing
    std::chrono::microseconds computed{0};
    std::string computed_during;
    std::uint64_t answers = 0;
    std::uint64_t failures = 0;
  };
  // Names what the test does from now on.
  void now_during(std::string_view what);
  // Waits until each service has been asked `rounds` more times.
  void wait_for_rounds(std::uint64_t rounds) const;
  // Stops asking.
  std::vector<Longest> stop();

 private:
  void ask(Service const& service, Longest& longest);

  std::vector<Service const*> const services_;
  std::vector<Longest> longest_;
  std::vector<std::thread> threads_;
  std::vector<std::unique_ptr<std::atomic<std::uint64_t>>> rounds_;
  std::atomic<char const*> during_{""};
  std::vector<std::unique_ptr<std::string>> told_;
  std::atomic<bool> is_over_{false};
};

// Stops asking, prints the longest times, and checks that every service answered each time, held up for less than
// `allowed`, and with less than `computing` of work.
void check_liveness(Liveness& liveness, std::chrono::milliseconds allowed, std::chrono::milliseconds computing);

}  // namespace chorus::testing
