#include "tests/simulation/blocking_thread.hpp"

#include <boost/asio/post.hpp>
#include <memory>

namespace chorus::simulation {

// An executor without timer and socket would wait on a condition variable instead of in epoll_wait.
BlockingThread::BlockingThread() : work_(io_.get_executor()), timer_(io_), thread_([this] { run(); }) {}

BlockingThread::~BlockingThread() {
  io_.stop();
  pass(Turn::thread);
  thread_.join();
}

void BlockingThread::run() {
  await(Turn::thread);
  io_.run();
  pass(Turn::machine);
}

void BlockingThread::pass(Turn to) {
  std::scoped_lock const lock(mutex_);
  turn_ = to;
  passed_.notify_all();
}

void BlockingThread::await(Turn own) {
  std::unique_lock lock(mutex_);
  passed_.wait(lock, [&] { return turn_ == own; });
}

void BlockingThread::go_on() {
  wake_ = TimePoint::max();
  pass(Turn::thread);
  await(Turn::machine);
}

void BlockingThread::wait(TimePoint wake) {
  wake_ = wake;
  pass(Turn::machine);
  await(Turn::thread);
}

bool BlockingThread::is_idle() {
  auto const was_run = std::make_shared<bool>(false);
  boost::asio::post(io_, [was_run] { *was_run = true; });
  go_on();
  return *was_run;
}

}  // namespace chorus::simulation
