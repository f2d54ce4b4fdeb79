// Client programs in another language, as the docs show them: with tensors in their own shared memory, and a training
// loop.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;

namespace {

// Returns the only block of Python on the page.
std::string python_of(std::string const& page) {
  std::ifstream file(std::string(CHORUS_SOURCE_DIR) + "/docs/" + page);
  std::ostringstream text;
  text << file.rdbuf();
  auto const all = text.str();
  std::string const begin = "```python\n";
  auto const from = all.find(begin);
  REQUIRE(from != std::string::npos);
  auto const to = all.find("```", from + begin.size());
  REQUIRE(to != std::string::npos);
  return all.substr(from + begin.size(), to - from - begin.size());
}

}  // namespace

TEST_CASE("the example of the docs: two Python programs reduce tensors in their own shared memory") {
  Cluster cluster(0);
  for (auto const* id : {"a", "b"}) cluster.add_worker(id, "host=h0", {"--allow-client-shm"});
  cluster.make_group("g");
  auto const code = python_of("guides/client_shared_memory.md");
  CHECK_MESSAGE(code.find("Idempotency-Key") != std::string::npos, "a repeated all_reduce would be the next one");
  Process first({"/usr/bin/env", "python3", "-c", code, cluster.worker(0).url, "1.5"});
  Process second({"/usr/bin/env", "python3", "-c", code, cluster.worker(1).url, "40"});
  for (auto* client : {&first, &second}) {
    auto const output = client->read_all();
    CHECK_MESSAGE(output.find(" 41.5 41.5\n") != std::string::npos, output);
    CHECK(client->wait() == 0);
  }
  // The client processes have ended and their shared memory has lost its names; the worker still uses the memory.
  CHECK(cluster.worker(0).get_tensor<float>("grad") == std::vector<float>(1 << 20, 41.5F));
  auto const again = cluster.run({{"group", "g"}, {"tensor", "grad"}});
  CHECK(again.at("state") == "succeeded");
  CHECK(cluster.worker(1).get_tensor<float>("grad").back() == 83);
  CHECK(cluster.worker(0).erase("/v1/shm/system/mine").code() == "region_in_use");
  CHECK(cluster.worker(0).erase("/v1/tensors/grad").status == 204);
  CHECK(cluster.worker(0).erase("/v1/shm/system/mine").status == 204);
}

TEST_CASE("the tutorial's trainers fit the same line, also when they are started again on the same workers") {
  Cluster cluster(2);
  cluster.make_group("training");
  auto const code = python_of("tutorials/training_loop.md");
  std::string line;
  for (int start = 0; start < 2; ++start) {
    std::vector<std::unique_ptr<Process>> trainers;
    for (std::size_t rank = 0; rank < 2; ++rank)
      trainers.push_back(std::make_unique<Process>(std::vector<std::string>{
          "/usr/bin/env", "python3", "-c", code, cluster.worker(rank).url, std::to_string(rank), "2"}));
    for (auto& trainer : trainers) {
      auto const output = trainer->read_all();
      CHECK(trainer->wait() == 0);
      auto const from = output.find("y = ");
      REQUIRE_MESSAGE(from != std::string::npos, output);
      if (line.empty()) line = output.substr(from);
      CHECK(output.substr(from) == line);
    }
  }
}
