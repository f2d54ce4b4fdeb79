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

}  // namespace chorus::parameters
