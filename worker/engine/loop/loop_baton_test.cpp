#include "worker/engine/loop/loop_baton.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <semaphore>
#include <thread>
#include <vector>

using chorus::engine::LoopBaton;

namespace {

// Takes the loop whenever it may, and gives it up when asked, until told to end.
class DataThread {
 public:
  DataThread() : thread_([this] { live(); }) {}
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
      ++taken_;
      taken_.notify_all();
      while (!baton.is_wanted() && !ends_) interrupted_.acquire();
      baton.give();
    }
  }
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

TEST_CASE("only one of many concurrent callers has the loop at a time") {
  DataThread data;
  std::atomic<int> inside = 0, most = 0, served = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int call = 0; call < 500; ++call) {
        if (!data.baton.borrow()) continue;
        if (++inside > most) most = inside.load();
        ++served;
        --inside;
        data.baton.give_back(call % 7 == 0, {});
      }
    });
  for (auto& caller : callers) caller.join();
  CHECK(most == 1);
  CHECK(served > 0);
  auto const before = data.taken();
  data.baton.nudge();
  data.wait_until_it_has_taken(std::max(before, 1U));
}
