// What a shard of a story needs: an executor, a thread, memory and a client.
#pragma once

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <memory>
#include <utility>

#include "http/client/client.hpp"
#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::parameters::testing {

// The story stops its hosts and lets go of them, then calls join().
struct Workplace {
  explicit Workplace(std::size_t block_bytes = 1 << 20, std::size_t limit_bytes = 4 << 20)
      : pool(block_bytes, limit_bytes) {}

  // Serves a shard that was just made for this assignment.
  [[nodiscard]] std::shared_ptr<ShardHost> serve(api::ShardAssignment const& assignment) {
    auto spec = ShardSpec::from(assignment);
    REQUIRE(spec.has_value());
    auto shard = Shard::make(std::move(*spec), pool);
    REQUIRE(shard.has_value());
    return std::make_shared<ShardHost>(tools, std::move(*shard), assignment);
  }
  // The threads give the shards' memory back.
  void join() { threads.join(); }

  boost::asio::io_context io;
  boost::asio::thread_pool threads{1};
  tensors::Pool pool;
  http::Client client{io.get_executor()};
  ShardTools tools{io.get_executor(),
                   threads.get_executor(),
                   {client, http::MessageChecksums::off},
                   pool,
                   {},
                   1 << 20,
                   {},
                   nullptr,
                   nullptr};
};

}  // namespace chorus::parameters::testing
