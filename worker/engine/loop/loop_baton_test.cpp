#include "worker/engine/loop/loop_baton.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <semaphore>
#include <thread>
#include <utility>
#include <vector>

using chorus::engine::LoopBaton;

namespace {

// Takes the loop whenever it may, and gives it up when asked, until told to end.
class DataThread {
 public:
  explicit DataThread(
      std::function<void()> has_taken = [] {}, std::function<void()> gives = [] {})
      : has_taken_(std::move(has_taken)), gives_(std::move(gives)), thread_([this] { live(); }) {}
  ~DataThread() {
    ends_ = true;
    baton.nudge();
    interrupted_.release();
    thread_.join();
  }
  LoopBaton baton{[this] { interrupted_.release(); }};
  void wait_until_it_has_taken(unsigned times) const {
    for (auto seen = taken_.load(); seen < times; seen = taken_.load()) taken_.wait(seen);
  }
  [[nodiscard]] unsigned taken() const { return taken_; }

 private:
  void live() {
    while (!ends_) {
      baton.take();
      has_taken_();
      ++taken_;
      taken_.notify_all();
      while (!baton.is_wanted() && !ends_) interrupted_.acquire();
      gives_();
      baton.give();
    }
  }
  std::function<void()> const has_taken_, gives_;
  std::counting_semaphore<> interrupted_{0};
  std::atomic<bool> ends_ = false;
  std::atomic<unsigned> taken_ = 0;
  std::thread thread_;
};

}  // namespace

TEST_CASE("the data thread has the loop until a caller wants it, and again when no caller comes back") {
  DataThread data;
  data.wait_until_it_has_taken(1);
  REQUIRE(data.baton.borrow());
  CHECK(data.taken() == 1);
  data.baton.give_back(false, {});
  data.wait_until_it_has_taken(2);
}

TEST_CASE("while one caller has the loop another one is served by it") {
  DataThread data;
  data.wait_until_it_has_taken(1);
  REQUIRE(data.baton.borrow());
  CHECK_FALSE(data.baton.borrow());
  data.baton.give_back(true, {});
  data.wait_until_it_has_taken(2);
}

// `inside` is no atomic: ThreadSanitizer sees a holder that does not follow the one before it.
TEST_CASE("only one of the data thread and many concurrent callers has the loop at a time") {
  int inside = 0;
  DataThread data([&inside] { CHECK(++inside == 1); }, [&inside] { --inside; });
  std::atomic<int> served = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int call = 0; call < 2000; ++call) {
        if (!data.baton.borrow()) continue;
        bool const is_alone = ++inside == 1;
        ++served;
        --inside;
        if (!is_alone) FAIL_CHECK("two holders");
        data.baton.give_back(call % 7 == 0, {});
      }
    });
  for (auto& caller : callers) caller.join();
  CHECK(served > 0);
  auto const before = data.taken();
  data.baton.nudge();
  data.wait_until_it_has_taken(std::max(before, 1U));
}

TEST_CASE("the data thread gets the loop for work that came while a caller held it, though callers come back at once") {
  DataThread data;
  for (unsigned round = 1; round <= 20; ++round) {
    auto const before = data.taken();
    bool is_nudged = false;
    for (bool is_over = false; !is_over;) {
      if (!data.baton.borrow()) continue;
      if (!std::exchange(is_nudged, true)) data.baton.nudge();
      is_over = data.taken() > before;
      data.baton.give_back(false, {});
    }
  }
  CHECK(data.taken() >= 20);
}
