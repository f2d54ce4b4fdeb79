// Programs on the C++ API that make groups of themselves, with a real coordinator.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/mentions.hpp"
#include "tests/support/process_size.hpp"
#include "worker/api/worker.hpp"
#include "worker/engine/failure/errc.hpp"

using namespace chorus;
using namespace chorus::testing;
using engine::EngineErrc;
using std::chrono::milliseconds;

namespace {

auto in(milliseconds time) { return std::chrono::steady_clock::now() + time; }
auto in_a_minute() { return in(std::chrono::seconds(60)); }

// Workers w0, w1, ... in this process, at a coordinator of their own.
struct Programs {
  explicit Programs(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      WorkerOptions options;
      options.coordinator = cluster.coordinator.url;
      options.id = "w" + std::to_string(i);
      options.log_level = "off";
      workers.push_back(Worker::start(options).value());
    }
  }

  // What these workers return from `action`, each in a thread of its own.
  template <class Action>
  auto at_once(std::vector<std::size_t> const& which, Action const& action) {
    using Value = decltype(action(workers.front(), std::size_t()));
    std::vector<std::future<Value>> begun;
    for (auto const i : which)
      begun.push_back(std::async(std::launch::async, [&action, this, i] { return action(workers.at(i), i); }));
    std::vector<Value> values;
    for (auto& one : begun) values.push_back(one.get());
    return values;
  }

  // All of these workers make the group; rank r is the r-th of them.
  std::vector<JoinedGroup> make(std::string const& name, std::vector<std::size_t> const& which) {
    GroupOptions options;
    for (auto const i : which) options.workers.push_back(workers.at(i).id());
    return at_once(
        which, [&](Worker& worker, std::size_t) { return worker.create_group(name, options, in_a_minute()).value(); });
  }

  Cluster cluster{0};
  std::vector<Worker> workers;
};

std::int32_t sum_of_ranks(JoinedGroup group) {
  std::vector<std::int32_t> x{static_cast<std::int32_t>(group.rank())};
  if (auto const status = group.all_reduce(x); status.has_error()) throw UnexpectedError(status.error());
  return x[0];
}

template <class Value>
void check_error(Result<Value> const& result, std::error_code code, std::string const& part) {
  REQUIRE(result.has_error());
  INFO(result.error().detail);
  CHECK(result.error().code == code);
  CHECK(mentions(result.error().detail, part));
}

std::size_t entries(std::string const& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

std::size_t lines(std::string const& path) {
  std::ifstream file(path);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
}

}  // namespace

TEST_CASE("workers that have just been started make a group of themselves, with the ranks that they list") {
  Programs programs(4);
  auto const groups = programs.make("g", {2, 0, 3, 1});
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    CHECK(groups[rank].rank() == rank);
    CHECK(groups[rank].size() == 4);
    CHECK(groups[rank].epoch() == 1);
  }
  auto const sums = programs.at_once({0, 1, 2, 3}, [&](Worker&, std::size_t i) { return sum_of_ranks(groups[i]); });
  CHECK(sums == std::vector<std::int32_t>(4, 6));
}

TEST_CASE("one worker makes a group of any size, and the others join it") {
  Programs programs(3);
  auto made = programs.workers[0].create_group("any", {.workers = {}, .size = 3, .order = ""}, in_a_minute()).value();
  CHECK(made.size() == 3);
  for (auto& worker : programs.workers) CHECK(worker.join("any", in_a_minute()).value().size() == 3);
  auto const ready = programs.cluster.coordinator.get("/v1/groups/any").json();
  CHECK(ready.at("order") == "locality");
  check_error(programs.workers[1].create_group("more", {.workers = {}, .size = 4, .order = ""}, in(milliseconds(1000))),
              WorkerErrc::not_assigned, "3 workers are ready");
}

TEST_CASE("a group that cannot be is refused with the reason, and nothing is made") {
  Programs programs(2);
  programs.make("g", {0, 1});
  auto& worker = programs.workers[0];
  auto const refused = [&](GroupOptions const& options, std::string const& part) {
    check_error(worker.create_group("bad", options, in_a_minute()), WorkerErrc::bad_argument, part);
  };
  refused({}, "exactly one");
  refused({{"w0", "w1"}, 2, ""}, "exactly one");
  refused({{"w0", "w1", "w0"}, 0, ""}, "'w0' is listed twice");
  refused({{"w0", "a b"}, 0, ""}, "'a b'");
  refused({{"w1", "w2"}, 0, ""}, "this worker, 'w0'");
  refused({{"w0"}, 0, "alphabetical"}, "alphabetical");
  refused({{}, 2, "listed"}, "listed");
  refused({std::vector<std::string>(1, "w0"), 300, ""}, "exactly one");
  check_error(worker.create_group("a/b", {{"w0"}, 0, ""}, in_a_minute()), WorkerErrc::bad_argument, "a/b");
  check_error(worker.create_group("g", {{"w0"}, 0, ""}, in_a_minute()), WorkerErrc::bad_argument, "already");
  check_error(worker.create_group("bad", {{"w0", "nobody"}, 0, ""}, in(milliseconds(1000))), WorkerErrc::not_assigned,
              "'nobody'");
  check_error(programs.workers[1].create_group("bad", {{"w0", "w1"}, 0, ""}, in(milliseconds(50))),
              WorkerErrc::not_assigned, "nobody has made a group bad");
  CHECK(programs.cluster.coordinator.get("/v1/groups/bad").code() == "unknown_group");
}

TEST_CASE("a member that waits for a group takes none of that name with other members") {
  Programs programs(3);
  REQUIRE(programs.at_once({0, 1, 2}, [&](Worker&, std::size_t) { return true; }).size() == 3);
  programs.make("warm", {0, 1, 2});  // all have joined the coordinator
  REQUIRE(programs.cluster.coordinator.put("/v1/groups/g", R"({"workers":["w0","w1"]})").status == 201);
  check_error(programs.workers[1].create_group("g", {{"w0", "w1", "w2"}, 0, ""}, in(milliseconds(50))),
              WorkerErrc::not_assigned, "other members: w0, w1");
  auto const groups = programs.make("g", {0, 1, 2});
  CHECK(groups[2].epoch() == 2);
  CHECK(groups[2].size() == 3);
}

TEST_CASE("some members of a group make groups of their own, of which the others know nothing") {
  Programs programs(4);
  auto const all = programs.make("g", {0, 1, 2, 3});
  auto const divide = [&](Worker&, std::size_t i) {
    return all[i]
        .subgroup(i % 2 == 0 ? std::vector<std::uint32_t>{2, 0} : std::vector<std::uint32_t>{1, 3}, in_a_minute())
        .value();
  };
  auto const halves = programs.at_once({0, 1, 2, 3}, divide);
  CHECK(halves[0].name() == halves[2].name());
  CHECK(halves[0].name() != halves[1].name());
  CHECK(halves[2].rank() == 0);
  CHECK(halves[0].rank() == 1);
  CHECK(halves[3].rank() == 1);
  auto const again = programs.at_once({0, 1, 2, 3}, divide);
  CHECK(again[0].name() != halves[0].name());
  for (auto const* groups : {&halves, &again, &all}) {
    auto const sums =
        programs.at_once({0, 1, 2, 3}, [&](Worker&, std::size_t i) { return sum_of_ranks((*groups)[i]); });
    CHECK(sums == std::vector<std::int32_t>(4, groups == &all ? 6 : 1));
  }
  check_error(all[0].subgroup({0, 4}, in_a_minute()), WorkerErrc::bad_argument, "has 4 ranks");
  check_error(all[0].subgroup({0, 1, 0}, in_a_minute()), WorkerErrc::bad_argument, "twice");
  check_error(all[0].subgroup({1, 2}, in_a_minute()), WorkerErrc::bad_argument, "rank 0, which calls");
  check_error(all[0].subgroup({}, in_a_minute()), WorkerErrc::bad_argument, "rank 0, which calls");
  check_error(all[1].subgroup({0, 1}, in(milliseconds(50))), WorkerErrc::not_assigned, "nobody has made");
}

TEST_CASE("a group that is deleted ends its members' calls, and its name may be used again") {
  Programs programs(2);
  auto const old = programs.make("g", {0, 1});
  CHECK(programs.at_once({0, 1}, [&](Worker&, std::size_t i) { return sum_of_ranks(old[i]); })[0] == 1);
  auto waiting = old[1];
  auto const call = waiting.barrier_async();
  CHECK(programs.workers[0].delete_group("g", in_a_minute()).has_value());
  auto const ended = call.wait();
  REQUIRE(ended.has_error());
  CHECK(ended.error().code == EngineErrc::epoch_fenced);
  check_error(programs.workers[0].join("g", in(milliseconds(20))), WorkerErrc::not_assigned, "group g");
  CHECK(programs.workers[1].delete_group("g", in_a_minute()).has_value());
  CHECK(programs.cluster.coordinator.get("/v1/groups/g").code() == "unknown_group");
  auto const groups = programs.make("g", {1, 0});
  CHECK(groups[0].epoch() > old[0].epoch());
  CHECK(programs.at_once({0, 1}, [&](Worker&, std::size_t i) { return sum_of_ranks(groups[i]); })[1] == 1);
}

TEST_CASE("a subgroup of a worker that is stopped meanwhile ends") {
  Programs programs(2);
  auto const groups = programs.make("g", {0, 1});
  auto waiting = std::async(std::launch::async, [&] { return groups[1].subgroup({0, 1}, in_a_minute()); });
  programs.workers.pop_back();
  auto const ended = waiting.get();
  REQUIRE(ended.has_error());
  CHECK(mentions(ended.error().detail, "stopped"));
  check_error(groups[1].subgroup({1}, in_a_minute()), EngineErrc::aborted, "stopped");
}

TEST_CASE("a thousand groups that were made, used and deleted leave nothing at workers and coordinator") {
  Programs programs(4);
  auto const& coordinator = programs.cluster.coordinator;
  auto const all = programs.make("all", {0, 1, 2, 3});
  auto const round = [&] {
    auto const groups = programs.at_once({0, 1, 2, 3}, [&](Worker&, std::size_t i) {
      auto group = all[i].subgroup({3, 2, 1, 0}, in_a_minute()).value();
      if (sum_of_ranks(group) != 6) throw std::runtime_error("a wrong sum");
      return group.name();
    });
    auto const deleted = programs.workers[1].delete_group(groups[1], in_a_minute());
    if (deleted.has_error()) throw UnexpectedError(deleted.error());
  };
  struct Count {
    std::size_t descriptors, mappings, threads, of_coordinator;
  };
  auto const count = [&] {
    return Count{entries("/proc/self/fd"), lines("/proc/self/maps"), entries("/proc/self/task"),
                 size_of(coordinator.process).descriptors};
  };
  for (int i = 0; i < 50; ++i) round();
  auto const before = count();
  for (int i = 0; i < 1000; ++i) round();
  auto const after = count();
  // Connections for requests are kept while they are of use, and so are a few mappings of memory.
  constexpr std::size_t kept = 40;
  CHECK(after.descriptors < before.descriptors + kept);
  CHECK(after.mappings < before.mappings + kept);
  CHECK(after.threads == before.threads);
  CHECK(after.of_coordinator < before.of_coordinator + kept);
  CHECK(coordinator.get("/v1/groups").json().at("items").as_array().size() == 1);
  for (auto const& worker : programs.workers) {
    httplib::Client client(worker.url());
    CHECK(boost::json::parse(client.Get("/v1/groups")->body).at("items").as_array().size() == 1);
  }
}
