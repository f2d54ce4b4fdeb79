#include "tests/support/fleets/liveness.hpp"

#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "tests/support/raw_http.hpp"

namespace chorus::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr std::chrono::milliseconds period{5};
constexpr std::chrono::seconds patience{60};

}  // namespace

ThreadTimes times_of(pid_t process, pid_t thread) {
  std::ifstream file("/proc/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/schedstat");
  std::uint64_t ran = 0, waited = 0;
  file >> ran >> waited;
  return {nanoseconds(ran), nanoseconds(waited)};
}

Liveness::Liveness(std::vector<Service const*> services) : services_(std::move(services)), longest_(services_.size()) {
  for (std::size_t i = 0; i < services_.size(); ++i) rounds_.push_back(std::make_unique<std::atomic<std::uint64_t>>(0));
  for (std::size_t i = 0; i < services_.size(); ++i)
    threads_.emplace_back([this, i] {
      longest_[i].service = services_[i]->id;
      for (; !is_over_; ++*rounds_[i]) {
        auto const next = Clock::now() + period;
        ask(*services_[i], longest_[i]);
        std::this_thread::sleep_until(next);
      }
    });
}

Liveness::~Liveness() { stop(); }

void Liveness::ask(Service const& service, Longest& longest) {
  auto const self = static_cast<pid_t>(syscall(SYS_gettid));
  auto const control = service.process.pid();  // the first thread of a service is its control thread
  RawConnection connection(service.port());
  auto const before = times_of(control, control), before_here = times_of(getpid(), self);
  auto const begun = Clock::now();
  connection.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  bool const is_alive = status_of(connection.read_answer(patience)) == 200;
  auto const took = Clock::now() - begun;
  auto const after = times_of(control, control), after_here = times_of(getpid(), self);
  auto const held_up =
      duration_cast<microseconds>(took - (after.waited - before.waited) - (after_here.waited - before_here.waited));
  auto const computed = duration_cast<microseconds>(after.ran - before.ran);
  ++(is_alive ? longest.answers : longest.failures);
  if (held_up > longest.held_up) {
    longest.held_up = held_up;
    longest.waited = duration_cast<microseconds>(took);
    longest.during = during_;
  }
  if (computed > longest.computed) {
    longest.computed = computed;
    longest.computed_during = during_;
  }
}

void Liveness::now_during(std::string_view what) {
  told_.push_back(std::make_unique<std::string>(what));
  during_ = told_.back()->c_str();
}

void Liveness::wait_for_rounds(std::uint64_t rounds) const {
  std::vector<std::uint64_t> until;
  for (auto const& done : rounds_) until.push_back(*done + rounds);
  for (std::size_t i = 0; i < rounds_.size(); ++i)
    while (*rounds_[i] < until[i]) pause_briefly();
}

std::vector<Liveness::Longest> Liveness::stop() {
  is_over_ = true;
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  return longest_;
}

void check_liveness(Liveness& liveness, std::chrono::milliseconds allowed, std::chrono::milliseconds computing) {
  for (auto const& longest : liveness.stop()) {
    MESSAGE(longest.service << " held up for " << longest.held_up.count() << " us (" << longest.waited.count()
                            << " us on the wall) during " << longest.during << ", computed " << longest.computed.count()
                            << " us during " << longest.computed_during << ", of " << longest.answers << " answers");
    CHECK_MESSAGE(longest.held_up < allowed, longest.service);
    CHECK_MESSAGE(longest.computed < computing, longest.service);
    CHECK(longest.failures == 0);
  }
}

}  // namespace chorus::testing
