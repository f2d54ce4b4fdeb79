// Readers of many rows pause the pushes of their shard, and pushes get their turns between them.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "base/runtime/task_group.hpp"
#include "worker/parameters/serving/testing/run_story.hpp"
#include "worker/parameters/serving/testing/workplace.hpp"
#include "worker/parameters/shard/testing/assignment.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;

constexpr std::uint64_t rows_count = 4096, columns = 64;  // more than is copied on the control thread
constexpr std::size_t readers_count = 3, copies_max = 300;

http::TimePoint before_a_minute() { return std::chrono::steady_clock::now() + std::chrono::minutes(1); }

class ReadShard {
 public:
  ReadShard() {
    auto assignment = testing::plain({rows_count, columns});
    assignment.role = "owner";
    assignment.epoch = 1;
    assignment.fresh = true;
    host_ = work_.serve(assignment);
  }
  ~ReadShard() {
    testing::run_story(work_.io, host_->stop());
    host_.reset();
    work_.join();
    work_.client.close();
  }
  ReadShard(ReadShard const&) = delete;
  ReadShard& operator=(ReadShard const&) = delete;

  // Returns the number of copies of all rows that readers got before a push among them was answered.
  std::size_t copies_before_the_push() {
    std::size_t copies = 0;
    testing::run_story(work_.io, push_among_readers(&copies));
    return copies;
  }

 private:
  asio::awaitable<void> read() {
    std::vector<std::uint64_t> rows(rows_count);
    std::iota(rows.begin(), rows.end(), std::uint64_t{0});
    std::vector<std::byte> into(rows_count * columns * sizeof(float));
    while (copies_ < copies_max) {
      auto const view = co_await host_->copy_rows({}, rows, into, before_a_minute());
      CHECK(view.has_value());
      ++copies_;
    }
  }
  asio::awaitable<void> push_among_readers(std::size_t* copies) {
    http::TaskGroup readers(work_.io.get_executor());
    for (std::size_t i = 0; i < readers_count; ++i) readers.spawn("reader", read());
    Push push;
    push.client = {"c", 0};
    auto const block = work_.pool.acquire(rows_count * columns * sizeof(float)).value();
    std::memset(block->data(), 0, block->size_bytes());
    push.data = block;
    auto const answer = co_await host_->push(std::move(push), before_a_minute());
    *copies = copies_;
    CHECK(answer.has_value());
    co_await readers.join();
  }

  testing::Workplace work_{16 << 20, 64 << 20};
  std::shared_ptr<ShardHost> host_;
  std::size_t copies_ = 0;
};

}  // namespace

TEST_CASE("a push gets its turn among readers of many rows who come without a gap, and so do they") {
  ReadShard shard;
  auto const copies = shard.copies_before_the_push();
  CHECK(copies <= 2 * readers_count);
}

}  // namespace chorus::parameters
