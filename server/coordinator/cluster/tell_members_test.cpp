// What members are told of an epoch, by a coordinator with workers that answer as the story tells them.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "server/coordinator/testing/fake_worker.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using boost::asio::awaitable;

namespace {

awaitable<void> is_refused_for_all(World* world, std::string group) {
  for (std::size_t i = 0; i < world->workers.size(); ++i) CHECK((co_await world->join(i)).status == 201);
  auto const refused = co_await world->put("/v1/groups/g", std::move(group));
  CHECK(refused.code() == "worker_unreachable");
  CHECK(refused.text("/ranks") == "[0,1,2]");
}

}  // namespace

TEST_CASE("a change of a group ends if each member has been told before the next one is") {
  CoordinatorOptions options;
  options.cluster.assignment = std::chrono::milliseconds(0);  // so a call ends where it begins
  World world(3, options);
  world.tell(is_refused_for_all(&world, R"({"workers":["w0","w1","w2"]})"));
}
