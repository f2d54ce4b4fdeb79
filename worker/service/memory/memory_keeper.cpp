#include "worker/service/memory/memory_keeper.hpp"

#include <spdlog/logger.h>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "worker/memory/regions/shared_room.hpp"

namespace chorus::service {
namespace {

using std::chrono::steady_clock;

constexpr std::uint64_t scarce_part = 8;  // of /dev/shm

std::uint32_t lacks_of(memory::Arena const* arena) {
  return arena != nullptr ? arena->mapping().head().lacks.load(std::memory_order_relaxed) : 0;
}

std::string room_text() {
  auto const room = memory::shared_room();
  if (!room) return std::string(memory::region_directory);
  return std::string(memory::region_directory) + " has " + std::to_string(room->free_bytes) + " of " +
         std::to_string(room->total_bytes) + " bytes free";
}

}  // namespace

MemoryKeeper::MemoryKeeper(boost::asio::any_io_executor executor, tensors::Pool& pool,
                           std::shared_ptr<memory::Arena const> arena, spdlog::logger& log, Patience patience,
                           boost::asio::any_io_executor instead)
    : executor_(executor),
      pool_(pool),
      arena_(std::move(arena)),
      log_(log),
      patience_(patience),
      lacks_seen_(lacks_of(arena_.get())),
      tasks_(std::move(executor)),
      thread_(std::move(instead)) {}

void MemoryKeeper::start() {
  beat();
  tasks_.spawn("memory keeper", watch());
}

boost::asio::awaitable<void> MemoryKeeper::stop() {
  tasks_.cancel();
  co_await tasks_.join();
}

boost::asio::awaitable<void> MemoryKeeper::watch() {
  boost::asio::steady_timer timer(executor_);
  for (;;) {
    timer.expires_after(patience_.period);
    co_await timer.async_wait(boost::asio::use_awaitable);
    beat();
    give_back();
    say_once();
  }
}

void MemoryKeeper::beat() {
  if (arena_ != nullptr) arena_->mapping().head().pulse.fetch_add(1, std::memory_order_relaxed);
}

bool MemoryKeeper::is_short() {
  if (arena_ == nullptr) return false;
  auto const now = steady_clock::now();
  if (auto const lacks = lacks_of(arena_.get()); lacks != lacks_seen_) {
    lacks_seen_ = lacks;
    short_until_ = now + patience_.shortage;
  }
  auto const room = memory::shared_room();
  return now < short_until_ || (room && room->free_bytes < room->total_bytes / scarce_part);
}

void MemoryKeeper::give_back() {
  auto const since = steady_clock::now() - (is_short() ? patience_.idle_in_shortage : patience_.idle);
  if (is_busy_.exchange(true)) return;
  boost::asio::post(thread_.executor(), [this, since] {
    pool_.give_back(since);
    is_busy_ = false;
  });
}

void MemoryKeeper::say_once() {
  if (is_said_) return;
  auto const use = pool_.use();
  if (use.lacks == 0) return;
  is_said_ = true;
  log_.warn(
      "{}: {}. Tensors go to private memory meanwhile, which the host's other workers copy instead of reading it in "
      "place. Make {} larger (SHARED_MEMORY of compose, worker.sharedMemory.size of the chart), or give the host's "
      "workers a smaller --memory-limit-bytes. This is said once; chorus_shared_memory_lacks_total counts on",
      use.last_lack, room_text(), memory::region_directory);
}

std::optional<std::string> MemoryKeeper::complaint() const {
  auto const use = pool_.use();
  if (use.private_bytes == 0) return std::nullopt;
  return std::to_string(use.private_bytes) +
         " bytes of tensors are in private memory, for want of shared memory: " + room_text() +
         "; make it larger, or give the host's workers a smaller --memory-limit-bytes";
}

}  // namespace chorus::service
