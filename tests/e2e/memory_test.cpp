// Memory of workers in small surroundings: a control group with a limit, a /dev/shm shared with neighbours.
#include <doctest/doctest.h>
#include <signal.h>

#include "tests/support/faults/surroundings.hpp"
#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t mebi = 1 << 20;

Answer put(Service const& worker, std::string const& name, std::size_t bytes, char fill = 'x') {
  return worker.put_tensor(name, "u8", std::to_string(bytes), std::string(bytes, fill));
}

std::vector<std::string> alone(std::string const& program, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{binary(program), "--port", "0", "--log-level", "warn"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// Puts tensors of this size until one is refused, and returns their number.
std::size_t fill_up(Service const& worker, std::string const& prefix, std::size_t bytes) {
  for (std::size_t i = 0;; ++i) {
    auto const answer = put(worker, prefix + std::to_string(i), bytes);
    if (answer.status == 201) continue;
    CHECK(answer.status == 503);
    CHECK(answer.code() == "unavailable");
    return i;
  }
}

}  // namespace

TEST_CASE("in a control group with a limit of 256 MiB, too large tensors are refused and no process is killed") {
  auto const group = ControlGroup::make(256 * mebi);
  if (!group) {
    MESSAGE("skipped: this machine lets the test make no control group with a limit of memory");
    return;
  }
  Service const coordinator("coordinator", group->inside(alone("chorus-coordinator")));
  CHECK(coordinator.metric("chorus_memory_limit_bytes") == 256 * mebi);
  Service worker("w", group->inside(alone("chorus-worker")));
  CHECK(worker.metric("chorus_memory_limit_bytes") == 256 * mebi);
  CHECK(worker.metric("chorus_tensor_limit_bytes") == 192 * mebi);

  CHECK(fill_up(worker, "large/", 90 * mebi) == 2);
  CHECK(worker.get("/v1/tensors/large/0").body == std::string(90 * mebi, 'x'));
  for (auto const* name : {"0", "1"}) CHECK(worker.erase(std::string("/v1/tensors/large/") + name).status == 204);

  // Tensors that leave gaps: each begins at a new huge page and needs a little of a second one.
  CHECK(fill_up(worker, "gaps/", 2 * mebi + 4096) >= 40);
  auto const small = fill_up(worker, "small/", mebi);
  CHECK(worker.metric("chorus_tensor_bytes") <= 192 * mebi);
  for (std::size_t i = 0; i < small; i += 2)
    CHECK(worker.erase("/v1/tensors/small/" + std::to_string(i)).status == 204);
  fill_up(worker, "again/", 5 * mebi);
  CHECK(worker.get("/readyz").status == 200);
  CHECK(coordinator.get("/readyz").status == 200);
  worker.process.signal(SIGTERM);
  CHECK(worker.process.wait() == 0);
}

TEST_CASE("a worker without room in /dev/shm says so, and gets memory that other workers keep unused") {
  if (!take_own_shared_memory(256 * mebi)) {
    MESSAGE("skipped: this machine lets the test have no /dev/shm of its own");
    return;
  }
  auto const limit = std::vector<std::string>{"--memory-limit-bytes", std::to_string(1000 * mebi)};
  Service const first("first", alone("chorus-worker", limit)), second("second", alone("chorus-worker", limit));
  REQUIRE(put(first, "x", 200 * mebi).status == 201);
  CHECK(first.metric("chorus_memory_kept_bytes") == 0);
  CHECK(first.metric("process_resident_memory_bytes") >= 200 * mebi);
  REQUIRE(first.erase("/v1/tensors/x").status == 204);
  CHECK(first.metric("chorus_memory_kept_bytes") == 200 * mebi);
  CHECK(second.get("/readyz").body == "ready\n");

  REQUIRE(put(second, "y", 100 * mebi).status == 201);
  CHECK(second.metric("chorus_shared_memory_lacks_total") == 1);
  CHECK(second.metric("chorus_memory_private_bytes") == 100 * mebi);
  auto const ready = second.get("/readyz");
  CHECK(ready.status == 200);
  CHECK(ready.body.starts_with("ready, but 104857600 bytes of tensors are in private memory"));
  CHECK(eventually([&] { return first.metric("chorus_memory_kept_bytes") == 0; }));
  CHECK(first.metric("chorus_memory_given_back_bytes_total{reason=\"idle\"") >= 200 * mebi);
  CHECK(first.metric("process_resident_memory_bytes") < 200 * mebi);

  // The next tensor lies in memory that other workers can read.
  REQUIRE(put(second, "y", 100 * mebi).status == 200);
  CHECK(second.metric("chorus_memory_private_bytes") == 0);
  CHECK(second.metric("chorus_shared_memory_lacks_total") == 1);
  CHECK(second.get("/readyz").body == "ready\n");

  // A worker gives kept memory back at once if another worker needs it. If the next tensor takes a second to arrive,
  // the kept memory has been given back as idle before; the test then tries again.
  CHECK(eventually([&] {
    REQUIRE(put(first, "x", 60 * mebi).status == 201);
    REQUIRE(first.erase("/v1/tensors/x").status == 204);
    REQUIRE(put(first, "z", 120 * mebi).status == 201);
    CHECK(first.metric("chorus_memory_private_bytes") == 0);
    REQUIRE(first.erase("/v1/tensors/z").status == 204);
    return first.metric("chorus_memory_given_back_bytes_total{reason=\"needed\"") >= 60 * mebi;
  }));
}
