// Which assignments leave a shard as it is, and which need another content.
#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "http/client/client.hpp"
#include "worker/parameters/serving/shard_book.hpp"
#include "worker/parameters/serving/testing/run_story.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

class Worker {
 public:
  Worker() = default;
  ~Worker() {
    testing::run_story(io_, book.stop());
    client_.close();
  }
  Worker(Worker const&) = delete;
  Worker& operator=(Worker const&) = delete;

 private:
  boost::asio::io_context io_;
  boost::asio::thread_pool threads_{1};
  tensors::Pool pool_{1 << 20, 1 << 20};
  http::Client client_{io_.get_executor()};

 public:
  ShardBook book{{io_.get_executor(),
                  threads_.get_executor(),
                  {client_, http::MessageChecksums::off},
                  pool_,
                  {},
                  1 << 20,
                  {},
                  nullptr,
                  nullptr},
                 "w0",
                 "1"};
};

api::ShardAssignment order(std::string const& role, std::uint32_t epoch, std::string uid) {
  auto order = testing::plain({4});
  order.parameter.uid = std::move(uid);
  order.worker = "w0";
  order.incarnation = "1";
  order.role = role;
  order.epoch = epoch;
  return order;
}

}  // namespace

TEST_CASE("a shard stays in later epochs of its parameter, and not for another parameter of its name") {
  Worker worker;
  auto fresh = order("backup", 1, "00aa");
  fresh.fresh = true;
  CHECK_FALSE(worker.book.keeps(fresh));
  REQUIRE_FALSE(worker.book.assign(fresh).has_value());
  CHECK(worker.book.keeps(fresh));  // told twice
  CHECK(worker.book.keeps(order("backup", 2, "00aa")));
  CHECK(worker.book.keeps(order("owner", 2, "00aa")));
  CHECK(worker.book.keeps(order("backup", 2, "")));  // from a coordinator that knows no uid
  // Deleted and made anew, which this worker was not told: the backup waits for an image.
  CHECK_FALSE(worker.book.keeps(order("backup", 2, "00bb")));
  CHECK_FALSE(worker.book.keeps(order("owner", 2, "00bb")));
  auto anew = order("backup", 2, "");
  anew.fresh = true;
  CHECK_FALSE(worker.book.keeps(anew));
  auto longer = order("backup", 2, "00aa");
  longer.end = 3;
  CHECK_FALSE(worker.book.keeps(longer));
}

TEST_CASE("pages of shards have every shard once, also of a parameter with more shards than a page") {
  Worker worker;
  auto const add = [&](std::string name, std::uint32_t shards) {
    for (std::uint32_t i = 0; i < shards; ++i) {
      auto fresh = order("owner", 1, "00aa");
      fresh.parameter.name = name;
      fresh.fresh = true;
      fresh.shard = i;
      REQUIRE_FALSE(worker.book.assign(fresh).has_value());
    }
  };
  add("a", 1);
  add("b", 5);
  add("c", 1);
  add("d", 2);
  for (std::size_t const limit : {1, 2, 3, 6, 8, 9}) {
    CAPTURE(limit);
    std::string seen, cursor;
    for (bool is_last = false; !is_last;) {
      auto const page = worker.book.list(cursor, limit);
      CHECK((page.items.size() <= limit || page.items.front().parameter == page.items.back().parameter));
      for (auto const& shard : page.items) seen += shard.parameter + std::to_string(shard.shard);
      is_last = !page.next_cursor;
      cursor = page.next_cursor.value_or("");
    }
    CHECK(seen == "a0b0b1b2b3b4c0d0d1");
  }
}

}  // namespace chorus::parameters
