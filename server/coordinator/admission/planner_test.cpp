// Answers of the planner that are kept.
#include "server/coordinator/admission/planner.hpp"

#include <doctest/doctest.h>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

using namespace chorus;
using namespace chorus::coordinator;
namespace asio = boost::asio;

namespace {

// Returns the predicted seconds of an all_reduce of 4 MiB over two hosts of a rack.
asio::awaitable<double> ask(Planner* planner) {
  Standing const standing{.localities = {{"", "", "r", "a"}, {"", "", "r", "b"}}};
  Planner::Question const question{.group = "g", .epoch = 1, .elements = 1 << 20, .element_bytes = 4};
  auto const choice = co_await planner->select(question, standing);
  co_return choice.value().cost.seconds;
}

}  // namespace

TEST_CASE("an answer that was being computed while a link was measured is not kept") {
  asio::io_context io;
  Planner planner(model::Constants::defaults(), io.get_executor());
  auto before = asio::co_spawn(io, ask(&planner), asio::use_future);
  asio::post(io, [&planner] { planner.measured(Level::rack, 25e-6, 1e6); });  // before the computation has its turn
  io.run();
  io.restart();
  auto after = asio::co_spawn(io, ask(&planner), asio::use_future);
  io.run();
  CHECK(after.get() > 10 * before.get());
}
