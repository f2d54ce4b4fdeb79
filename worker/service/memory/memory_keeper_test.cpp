#include "worker/service/memory/memory_keeper.hpp"

#include <doctest/doctest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <sstream>

#include "worker/memory/regions/shared_room.hpp"

using namespace chorus;
using namespace std::chrono_literals;
using service::MemoryKeeper;

namespace {

constexpr std::size_t MiB = 1 << 20;

struct World {
  explicit World(MemoryKeeper::Patience patience, std::uint64_t arena_bytes = 64 * MiB)
      : arena(
            std::make_shared<memory::Arena>(memory::SharedRegion::create(memory::random_ticket(arena_bytes)).value())),
        pool(64 * MiB, 256 * MiB, arena),
        keeper(io.get_executor(), pool, arena, log, patience) {
    keeper.start();
  }
  ~World() {
    auto stopped = boost::asio::co_spawn(io, keeper.stop(), boost::asio::use_future);
    io.run();
    stopped.get();
  }
  template <class Condition>
  void run_until(Condition const& condition) {
    while (!condition()) io.run_one();
  }
  void run_some_periods() {
    for (int i = 0; i < 20; ++i) io.run_one();
  }
  [[nodiscard]] std::string said() {
    log.flush();
    return text.str();
  }

  std::ostringstream text;
  spdlog::logger log{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)};
  boost::asio::io_context io{1};
  std::shared_ptr<memory::Arena> arena;
  tensors::Pool pool;
  MemoryKeeper keeper;
};

}  // namespace

TEST_CASE("those that read this worker's memory see from its start on that it lives") {
  World w({.period = 1ms, .idle = 1h, .idle_in_shortage = 1h, .shortage = 0ms});
  auto const& pulse = w.arena->mapping().head().pulse;
  CHECK(pulse == 1);
  w.run_until([&] { return pulse > 3; });
}

TEST_CASE("memory of deleted tensors is given back after a while") {
  World w({.period = 1ms, .idle = 5ms, .idle_in_shortage = 1h, .shortage = 0ms});
  auto const in_use = w.pool.acquire(MiB).value();
  static_cast<void>(w.pool.acquire(20 * MiB).value());
  CHECK(w.arena->backed_bytes() > 20 * MiB);
  w.run_until([&] { return w.pool.kept_bytes() == 0; });
  w.run_until([&] { return w.arena->backed_bytes() <= 2 * MiB; });
  CHECK(w.pool.use().idle_bytes >= 20 * MiB);
  CHECK(w.said().empty());
}

TEST_CASE("memory that lies idle for a short while is used again") {
  World w({.period = 1ms, .idle = 1h, .idle_in_shortage = 1h, .shortage = 0ms});
  auto const* const place = w.pool.acquire(20 * MiB).value()->data();
  w.run_some_periods();
  CHECK(w.pool.acquire(20 * MiB).value()->data() == place);
}

TEST_CASE("memory is given back soon when a process on the host lacks room") {
  World w({.period = 1ms, .idle = 1h, .idle_in_shortage = 0ms, .shortage = 1h});
  static_cast<void>(w.pool.acquire(20 * MiB).value());
  memory::tell_of_lack();
  w.run_until([&] { return w.pool.kept_bytes() == 0; });
}

TEST_CASE("a tensor that finds no shared memory is reported once, and complained of as long as it exists") {
  World w({.period = 1ms, .idle = 1h, .idle_in_shortage = 1h, .shortage = 0ms}, 16 * MiB);
  CHECK_FALSE(w.keeper.complaint());
  auto const shared = w.pool.acquire(12 * MiB).value();
  for (int i = 0; i < 2; ++i) {
    auto const own = w.pool.acquire(12 * MiB).value();
    CHECK(w.pool.use().lacks == static_cast<std::uint64_t>(i) + 1);
    w.run_until([&] { return !w.said().empty(); });
    w.run_some_periods();
    REQUIRE(w.keeper.complaint());
    CHECK(w.keeper.complaint()->starts_with("12582912 bytes of tensors are in private memory"));
  }
  CHECK_FALSE(w.keeper.complaint());
  auto const said = w.said();
  CHECK(said.find("12582912 bytes asked for") != std::string::npos);
  CHECK(said.find("--memory-limit-bytes") != std::string::npos);
  CHECK(said.find("private memory", said.find("private memory") + 1) == std::string::npos);
}
