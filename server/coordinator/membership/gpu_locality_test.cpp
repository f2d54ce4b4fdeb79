// Workers that report their GPUs: what the coordinator stores, shows and refuses, over real sockets.
#include <doctest/doctest.h>

#include "collectives/topology/dgx1.hpp"
#include "server/coordinator/testing/fake_worker.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;
using chorus::testing::ScratchDirectory;

namespace {

// Joins one worker per GPU of a p3.16xlarge.
awaitable<void> join_all(World* world) {
  auto const gpus = topology::dgx1_gpus();
  for (std::size_t i = 0; i < world->workers.size(); ++i) {
    world->workers[i]->gpus = {gpus[i]};
    CHECK((co_await world->join(i)).status == 201);
  }
}

std::string ring_of(World::Said const& group) {
  std::string ring;
  for (auto const& member : group.json.at("members").as_array()) ring += member.at("worker").as_string().back();
  return ring;
}

awaitable<void> shows_them(World* world) {
  co_await join_all(world);
  auto const worker = co_await world->get("/v1/workers/w3");
  CHECK(worker.text("/gpus/0/uuid") == "GPU-00000000-0000-0000-0000-000000000003");
  CHECK(worker.text("/gpus/0/pci_address") == "0000:00:1a.0");
  CHECK(worker.text("/gpus/0/name") == "Tesla V100-SXM2-16GB");
  CHECK(worker.text("/gpus/0/pcie_width") == "16");
  CHECK(worker.text("/gpus/0/nvlinks/0") == R"({"to":"0000:00:17.0","is_switch":false,"links":2,"gbyte_per_s":50})");
  auto const list = co_await world->get("/v1/workers");
  CHECK(list.text("/items/3/gpus") == worker.text("/gpus"));
}

awaitable<void> follows_them_after_a_restart_too(World* world) {
  co_await join_all(world);
  auto const group = co_await world->put("/v1/groups/g", R"({"size":8})");
  CHECK(group.status == 201);
  CHECK(group.text("/order") == "locality");
  auto const ring = ring_of(group);
  CHECK((ring == "03215674" || ring == "04765123"));  // the only ring of double NVLinks
  std::string const plan = R"({"group":"g","bytes":67108864,"algorithm":"ring"})";
  auto const seconds = (co_await world->post("/v1/plans", plan)).text("/predicted_seconds");
  co_await world->restart();
  CHECK((co_await world->get("/v1/workers/w3")).text("/gpus/0/pci_address") == "0000:00:1a.0");
  CHECK((co_await world->post("/v1/plans", plan)).text("/predicted_seconds") == seconds);
  CHECK(ring_of(co_await world->put("/v1/groups/g", R"({"size":8})")) == ring);
}

awaitable<void> prices_them_where_tensors_lie(World* world) {
  co_await join_all(world);
  CHECK((co_await world->put("/v1/groups/g", R"({"size":8})")).status == 201);
  for (auto& worker : world->workers) worker->tensors["x"] = {"f32", "16777216", 1, "cuda:0"};
  auto const seconds_of = [](World::Said const& ran) {
    CHECK(ran.text("/state") == "succeeded");
    return ran.json.at_pointer("/predicted_seconds").to_number<double>();
  };
  std::string const ring = R"({"group":"g","tensor":"x","algorithm":"ring"})";
  auto const on_gpus = seconds_of(co_await world->post("/v1/collectives?wait=5s", ring));
  // One rank without a GPU tensor is enough. The times of these runs are learned: the model no longer prices later
  // ones.
  world->workers[5]->tensors["x"].device = "cpu";
  CHECK(seconds_of(co_await world->post("/v1/collectives?wait=5s", ring)) > 5 * on_gpus);
}

awaitable<void> sees_that_they_changed(World* world) {
  co_await join_all(world);
  world->workers[3]->gpus.clear();
  CHECK((co_await world->join(3)).status == 200);
  CHECK((co_await world->get("/v1/workers/w3")).text("/gpus") == "[]");
  co_await world->restart();
  CHECK((co_await world->get("/v1/workers/w3")).text("/gpus") == "[]");
}

struct Refused {
  std::string gpus, pointer;
};

std::vector<Refused> what_no_gpu_can_be() {
  std::string const begin = R"([{"uuid":"GPU-00000000-0000-0000-0000-000000000000","pci_address":"0000:00:17.0")";
  std::string const link = R"({"to":"0000:00:18.0","links":1,"gbyte_per_s":25})";
  auto many = link;
  for (int i = 1; i < 10000; ++i) many += "," + link;
  return {
      {R"([{"uuid":"GPU-1","pci_address":"0000:00:17.0"}])", "/gpus/0/uuid"},
      {begin + R"(,"memory_gbyte_per_s":-1}])", "/gpus/0/memory_gbyte_per_s"},
      {begin + R"(,"memory_gbyte_per_s":1e999}])", "/gpus/0/memory_gbyte_per_s"},
      {begin + R"(,"nvlinks":[{"to":"0000:00:18.0","links":1,"gbyte_per_s":null}]}])", "/gpus/0/nvlinks/0/gbyte_per_s"},
      {begin + R"(,"nvlinks":[{"to":"0000:00:18.0","links":-1,"gbyte_per_s":25}]}])", "/gpus/0/nvlinks/0/links"},
      {begin + R"(,"nvlinks":[)" + many + "]}]", "/gpus/0/nvlinks"}};
}

awaitable<void> refuses_what_no_gpu_can_be(World* world) {
  auto const url = world->workers[0]->url();
  auto const begin = R"({"id":"w0","incarnation":"0000000000000001","url":")" + url + R"(","gpus":)";
  for (auto const& [gpus, pointer] : what_no_gpu_can_be()) {
    auto const body = begin + gpus + "}";
    auto const said = co_await world->post("/v1/workers", body);
    CHECK(said.status == 422);
    CHECK(said.code() == "invalid_field");
    CHECK(said.text("/errors/0/pointer") == pointer);
  }
  CHECK((co_await world->get("/v1/workers")).text("/items") == "[]");
}

void tell_of(std::size_t workers, awaitable<void> (*story)(World*)) {
  ScratchDirectory const here;
  World world(workers, {}, here / "journal");
  world.tell(story(&world));
}

}  // namespace

TEST_CASE("the coordinator shows the GPUs of a worker, with their NVLinks") { tell_of(8, shows_them); }
TEST_CASE("ranks follow NVLinks, after a restart of the coordinator too") {
  tell_of(8, follows_them_after_a_restart_too);
}
TEST_CASE("a collective is priced by NVLinks only where every rank's tensor lies on a GPU") {
  tell_of(8, prices_them_where_tensors_lie);
}
TEST_CASE("a worker that joins again without its GPUs has none") { tell_of(8, sees_that_they_changed); }
TEST_CASE("a join with impossible GPUs is refused, with a pointer") { tell_of(1, refuses_what_no_gpu_can_be); }
