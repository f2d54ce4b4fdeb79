// Answers of the planner that are kept.
#include "server/coordinator/admission/planner.hpp"

#include <doctest/doctest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

using namespace chorus;
using namespace chorus::coordinator;
namespace asio = boost::asio;

namespace {

// Appends the predicted time of an all_reduce of 4 MiB over two hosts of a rack.
asio::awaitable<void> ask(Planner* planner, std::vector<double>* predicted_s) {
  Standing const standing{.localities = {{"", "", "r", "a"}, {"", "", "r", "b"}}};
  Planner::Question const question{.group = "g", .epoch = 1, .elements = 1 << 20, .element_bytes = 4};
  auto const choice = co_await planner->select(question, standing);
  predicted_s->push_back(choice.value().cost.seconds);
}

}  // namespace

TEST_CASE("an answer that was being computed while a link was measured is not kept") {
  asio::io_context io;
  std::vector<double> predicted_s;
  {
    Planner planner(model::Constants::defaults(), io.get_executor());
    asio::co_spawn(io, ask(&planner, &predicted_s), asio::detached);
    asio::post(io, [&planner] { planner.measured(Level::rack, 25e-6, 1e6); });  // before the computation has its turn
    io.run();
    io.restart();
    asio::co_spawn(io, ask(&planner, &predicted_s), asio::detached);
    io.run();
  }
  REQUIRE(predicted_s.size() == 2);
  CHECK(predicted_s[1] > 10 * predicted_s[0]);
}
