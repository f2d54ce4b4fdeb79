#include "worker/parameters/disk/disk.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

#include "base/runtime/condition.hpp"
#include "collectives/core/assert.hpp"
#include "worker/parameters/disk/disk_calls.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

double seconds_since(steady_clock::time_point then) {
  return std::chrono::duration<double>(steady_clock::now() - then).count();
}

std::string in_tenths(double seconds) {
  auto const tenths = static_cast<std::uint64_t>(seconds * 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string has_not_returned(DiskWork::Wait const& wait) {
  return wait.call + " has not returned for " + in_tenths(seconds_since(wait.since));
}

}  // namespace

// Shared with the threads, because some may be left behind.
struct Disk::State : std::enable_shared_from_this<State> {
  State(asio::any_io_executor executor, std::shared_ptr<checkpoints::Files> plain)
      : control(executor), files(watched(std::move(plain), calls)), changed(std::move(executor)) {}

  void enqueue(DiskWorkPtr work, std::size_t most_threads) {
    open.insert(work.get());
    std::scoped_lock const lock(mutex);
    queue.push_back(std::move(work));
    if (idle < queue.size() && threads.size() < most_threads)
      threads.emplace_back([self = shared_from_this()] { self->serve(); });
    wakes.notify_one();
  }

  // The loop of a thread.
  void serve() {
    while (auto const work = next()) {
      calls->begin(work);
      if (!calls->seen(*work).is_given_up) work->run();
      work->run = nullptr;
      calls->end();
      asio::post(control, [self = shared_from_this(), work] {
        self->open.erase(work.get());
        self->changed.notify_all();
      });
    }
    std::scoped_lock const lock(mutex);
    ended.insert(std::this_thread::get_id());
    ends.notify_all();
  }

  DiskWorkPtr next() {
    std::unique_lock lock(mutex);
    ++idle;
    wakes.wait(lock, [this] { return is_stopped || !queue.empty(); });
    --idle;
    if (queue.empty()) return nullptr;
    auto work = std::move(queue.front());
    queue.pop_front();
    return work;
  }

  asio::any_io_executor const control;
  std::shared_ptr<DiskCalls> const calls = std::make_shared<DiskCalls>();
  std::shared_ptr<checkpoints::Files> const files;
  std::mutex mutex;
  std::condition_variable wakes, ends;
  std::deque<DiskWorkPtr> queue;
  std::size_t idle = 0;
  bool is_stopped = false;
  std::vector<std::thread> threads;
  std::set<std::thread::id> ended;
  // Used on the control thread only.
  http::Condition changed;
  std::set<DiskWork const*> open;  // work that has not ended, even if no caller waits for it
  bool takes_nothing = false;
};

Disk::Disk(asio::any_io_executor control, std::shared_ptr<checkpoints::Files> files, DiskPatience patience)
    : state_(std::make_shared<State>(std::move(control), std::move(files))), patience_(patience) {}

std::shared_ptr<checkpoints::Files> const& Disk::files() const { return state_->files; }

Disk::~Disk() {
  std::unique_lock lock(state_->mutex);
  state_->is_stopped = true;
  state_->queue.clear();
  state_->wakes.notify_all();
  std::set<std::thread::id> left;
  // All work was given up, so a thread outside of a system call either ends or enters one.
  while (state_->ended.size() + left.size() < state_->threads.size()) {
    for (auto const thread : state_->calls->leave_waiting()) left.insert(thread);
    state_->ends.wait_for(lock, std::chrono::milliseconds(1));
  }
  lock.unlock();
  // A thread that is left behind keeps the state, with its own handle, for ever.
  for (auto& thread : state_->threads)
    if (!left.contains(thread.get_id())) thread.join();
}

namespace {

// The interest of a caller in its work. The destructor gives the work up.
class Interest {
 public:
  Interest(DiskCalls& calls, DiskWorkPtr work) : calls_(calls), work_(std::move(work)) {}
  ~Interest() { calls_.give_up(*work_); }
  Interest(Interest const&) = delete;
  Interest& operator=(Interest const&) = delete;

 private:
  DiskCalls& calls_;
  DiskWorkPtr const work_;
};

Problem is_stopping() { return {ProblemCode::unavailable, "the worker is stopping"}; }

Problem stalls(std::string detail) {
  Problem problem(ProblemCode::unavailable, std::move(detail));
  problem.retry_after_s = 5;
  return problem;
}

}  // namespace

std::shared_ptr<DiskWork> Disk::make_work(std::string title, std::function<void()> run) const {
  auto work = std::make_shared<DiskWork>();
  work->title = std::move(title);
  work->run = std::move(run);
  return work;
}

asio::awaitable<std::optional<Problem>> Disk::perform(DiskWorkPtr work, http::TimePoint deadline, Patience patience) {
  auto const state = state_;
  if (state->takes_nothing) co_return is_stopping();
  Interest const interest(*state->calls, work);
  state->enqueue(work, patience_.threads);
  while (state->open.contains(work.get())) {
    auto look_again = deadline;
    if (patience == Patience::with_calls)
      if (auto problem = stalled(*work, &look_again)) co_return std::move(*problem);
    if (steady_clock::now() >= deadline) {
      auto const seen = state->calls->seen(*work);
      co_return Problem(ProblemCode::deadline_exceeded,
                        seen.title + " has not ended" + (seen.wait ? ": " + has_not_returned(*seen.wait) : ""));
    }
    co_await state->changed.wait_until(std::min(deadline, look_again));
    if (state->takes_nothing && state->open.contains(work.get())) co_return is_stopping();
  }
  if (state->takes_nothing) co_return is_stopping();
  co_return std::nullopt;
}

std::optional<Problem> Disk::stalled(DiskWork const& work, http::TimePoint* look_again) const {
  auto const now = steady_clock::now();
  auto const is_over = [&](DiskWork const& seen) { return seen.wait && seen.wait->since + patience_.call <= now; };
  auto const seen = state_->calls->seen(work);
  if (seen.is_begun) {
    if (is_over(seen)) return stalls(seen.title + ": " + has_not_returned(*seen.wait));
    *look_again = (seen.wait ? seen.wait->since : now) + patience_.call;
    return std::nullopt;
  }
  auto const all = state_->calls->all();
  auto const over = static_cast<std::size_t>(std::ranges::count_if(all, is_over));
  if (over >= patience_.threads)
    return stalls(seen.title + " has not begun: all " + std::to_string(over) + " threads for files wait, " +
                  has_not_returned(*all.front().wait));
  *look_again = now + patience_.call / 4;
  return std::nullopt;
}

void Disk::let_go(std::shared_ptr<void const> owner) {
  auto work = make_work("closing files", [owner = std::move(owner)]() mutable { owner = nullptr; });
  asio::post(state_->control, [state = state_, work = std::move(work), threads = patience_.threads]() mutable {
    if (!state->takes_nothing) state->enqueue(std::move(work), threads);
  });
}

std::optional<Disk::Stall> Disk::longest() const {
  std::optional<Stall> longest;
  for (auto const& work : state_->calls->all()) {
    if (!work.wait) continue;
    auto const seconds = seconds_since(work.wait->since);
    if (!longest || seconds > longest->seconds) longest = Stall{work.wait->call + " (" + work.title + ")", seconds};
  }
  return longest;
}

std::optional<std::string> Disk::trouble() const {
  auto const stall = longest();
  if (!stall || stall->seconds < std::chrono::duration<double>(patience_.call).count()) return std::nullopt;
  return "the disk does not answer: " + stall->text + " has not returned for " + in_tenths(stall->seconds);
}

asio::awaitable<void> Disk::settled(http::TimePoint until) {
  auto const state = state_;
  while (!state->open.empty() && steady_clock::now() < until) co_await state->changed.wait_until(until);
}

asio::awaitable<std::vector<std::string>> Disk::stop(http::TimePoint until) {
  auto const state = state_;
  state->takes_nothing = true;
  {
    std::scoped_lock const lock(state->mutex);
    for (auto const& work : state->queue) state->open.erase(work.get());
    state->queue.clear();
  }
  state->calls->give_up_all();
  state->changed.notify_all();
  while (!state->open.empty() && steady_clock::now() < until) co_await state->changed.wait_until(until);
  std::vector<std::string> left;
  for (auto const& work : state->calls->all())
    if (work.wait) left.push_back(work.title + ": " + has_not_returned(*work.wait));
  co_return left;
}

}  // namespace chorus::parameters
