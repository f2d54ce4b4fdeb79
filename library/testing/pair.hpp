// Workers on the C interface in this process, and a coordinator that does what the test says.
#pragma once

#include <chorus/chorus.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "worker/api/testing/embedded_group.hpp"
#include "worker/api/testing/must.hpp"

namespace chorus::library::testing {

using embedded::testing::FakeCoordinator;
using embedded::testing::must;

struct Free {
  void operator()(chorus_worker_t* worker) const { chorus_worker_free(worker); }
  void operator()(chorus_group_t* group) const { chorus_group_free(group); }
  void operator()(chorus_request_t* request) const { chorus_request_free(request); }
  void operator()(chorus_memory_t* memory) const { chorus_memory_free(memory); }
  void operator()(chorus_error_t* error) const { chorus_error_free(error); }
};
using Worker = std::unique_ptr<chorus_worker_t, Free>;
using Group = std::unique_ptr<chorus_group_t, Free>;
using Request = std::unique_ptr<chorus_request_t, Free>;
using Block = std::unique_ptr<chorus_memory_t, Free>;
using ErrorObject = std::unique_ptr<chorus_error_t, Free>;

inline ErrorObject new_error() { return ErrorObject(chorus_error_create()); }

inline Worker start(std::string const& id, char const* coordinator, bool shares_memory = true) {
  chorus_worker_options_t options{};
  options.size = sizeof(options);
  options.coordinator = coordinator;
  options.id = id.c_str();
  options.memory_limit_bytes = 256 << 20;
  options.private_memory = shares_memory ? 0 : 1;
  options.drain_timeout_ms = 200;
  options.log_level = "off";
  chorus_worker_t* worker = nullptr;
  must(chorus_worker_start(&options, &worker, nullptr) == CHORUS_OK, "the worker starts");
  return Worker(worker);
}

inline Group join(Worker const& worker) {
  chorus_group_t* group = nullptr;
  must(chorus_worker_join(worker.get(), "g", 20'000, &group, nullptr) == CHORUS_OK, "the worker joins");
  return Group(group);
}

struct Pair {
  explicit Pair(bool shares_memory = true) {
    for (auto const* const id : {"w0", "w1"}) workers.push_back(start(id, coordinator.url().c_str(), shares_memory));
    coordinator.assign("g", 1, {"w0", "w1"});
    for (auto const& worker : workers) groups.push_back(join(worker));
  }

  // What both ranks do, each in a thread of its own; throws what one of them threw.
  void both(std::function<void(chorus_group_t* group, std::uint32_t rank)> const& action) {
    std::exception_ptr failure;
    std::thread other([&] {
      try {
        action(groups[1].get(), 1);
      } catch (...) { failure = std::current_exception(); }
    });
    try {
      action(groups[0].get(), 0);
    } catch (...) {
      other.join();
      throw;
    }
    other.join();
    if (failure) std::rethrow_exception(failure);
  }

  FakeCoordinator coordinator;
  std::vector<Worker> workers;
  std::vector<Group> groups;
};

using Numbers = std::vector<std::int32_t>;

inline chorus_tensor_t tensor(Numbers& numbers) { return {numbers.data(), numbers.size(), CHORUS_I32, 0}; }
inline chorus_const_tensor_t const_tensor(Numbers const& numbers) {
  return {numbers.data(), numbers.size(), CHORUS_I32, 0};
}

// All defaults but for the timeout.
inline chorus_collective_options_t options_of(std::int64_t timeout_ms = 0) {
  chorus_collective_options_t options{};
  options.size = sizeof(options);
  options.timeout_ms = timeout_ms;
  return options;
}

// Rank 0 has {1, 2, 3, 4}, rank 1 {10, 20, 30, 40}; halves are the blocks.
inline Numbers of_rank(std::uint32_t rank) { return rank == 0 ? Numbers{1, 2, 3, 4} : Numbers{10, 20, 30, 40}; }

}  // namespace chorus::library::testing
