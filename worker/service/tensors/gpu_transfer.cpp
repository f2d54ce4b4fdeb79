#include "worker/service/tensors/gpu_transfer.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <cstring>
#include <deque>
#include <vector>

#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using devices::Lane;
using devices::PinnedPool;
using http::Checked;
using std::chrono::steady_clock;

constexpr std::chrono::microseconds between_looks{50};
// For a free slot: copies hold slots only briefly, runs may hold them longer.
constexpr std::chrono::seconds patience_for_slots{2};
constexpr std::chrono::milliseconds between_attempts{1};

// Pieces on their way to or from a block on a GPU, each in a slot. Lives only as long as the transfer.
class Shuttle {
 public:
  Shuttle(std::shared_ptr<tensors::Block const> block, Lane lane, std::vector<devices::PinnedSlot> slots,
          std::unique_ptr<devices::GpuSession> session)
      : gpu_(*block->gpu()),
        lane_(lane),
        used_(std::make_shared<Used>(std::move(block), std::move(slots))),
        session_(std::move(session)),
        marks_(used_->slots.size()) {}
  ~Shuttle() {
    gpu_.count(session_->use());
    if (is_idle())
      gpu_.give_back(std::move(session_));
    else
      gpu_.abandon(std::move(session_), std::move(used_));
  }
  Shuttle(Shuttle const&) = delete;
  Shuttle& operator=(Shuttle const&) = delete;

  [[nodiscard]] std::size_t slots() const { return used_->slots.size(); }
  [[nodiscard]] std::span<std::byte> slot(std::size_t n) const { return used_->slots[n].bytes(); }

  // Copies between slot n and the GPU's memory.
  [[nodiscard]] Status move(std::size_t n, std::byte* to, std::byte const* from, std::uint64_t bytes) {
    if (auto const queued = session_->copy(lane_, to, from, bytes); !queued) return seen(queued.error());
    auto const mark = session_->mark(lane_);
    if (!mark) return seen(mark.error());
    marks_[n] = *mark;
    return ok();
  }

  [[nodiscard]] Result<bool> has_moved(std::size_t n) {
    auto reached = session_->reached(marks_[n]);
    if (!reached) return seen(reached.error());
    return reached;
  }

  [[nodiscard]] Error seen(Error error) {
    has_failed_ = true;
    gpu_.saw(error);
    return error;
  }

  [[nodiscard]] devices::GpuUnit& gpu() const { return gpu_; }

 private:
  struct Used {
    Used(std::shared_ptr<tensors::Block const> b, std::vector<devices::PinnedSlot> s)
        : block(std::move(b)), slots(std::move(s)) {}
    std::shared_ptr<tensors::Block const> const block;
    std::vector<devices::PinnedSlot> const slots;
  };
  [[nodiscard]] bool is_idle() {
    if (has_failed_) return false;
    for (auto const mark : marks_)
      if (auto const reached = session_->reached(mark); !reached || !*reached) return false;
    return true;
  }

  devices::GpuUnit& gpu_;
  Lane const lane_;
  std::shared_ptr<Used const> used_;
  std::unique_ptr<devices::GpuSession> session_;
  std::vector<devices::Mark> marks_;
  bool has_failed_ = false;
};

// Takes up to slots_max free slots, and waits for one if there is none.
awaitable<Result<std::shared_ptr<Shuttle>>> open_shuttle(std::shared_ptr<tensors::Block const> block, Lane lane,
                                                         std::size_t slots_max) {
  auto& gpu = *block->gpu();
  auto const executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer pause(executor);
  auto const deadline = steady_clock::now() + patience_for_slots;
  std::vector<devices::PinnedSlot> slots;
  while (slots.size() < slots_max) {
    if (auto const why = gpu.lost()) co_return Error(devices::GpuErrc::lost, *why);
    auto slot = gpu.pinned().take(devices::PinnedUse::transfer);
    if (slot) {
      slots.push_back(std::move(*slot));
    } else if (!slots.empty()) {
      break;
    } else if (slot.error().code != devices::GpuErrc::out_of_memory || steady_clock::now() >= deadline) {
      co_return slot.error();
    } else {
      pause.expires_after(between_attempts);
      co_await pause.async_wait(boost::asio::use_awaitable);
    }
  }
  auto session = gpu.session();
  if (!session) {
    gpu.saw(session.error());
    co_return session.error();
  }
  co_return std::make_shared<Shuttle>(std::move(block), lane, std::move(slots), std::move(*session));
}

// Waits until the copy of slot n is done.
awaitable<Status> moved(std::shared_ptr<Shuttle> shuttle, std::size_t n) {
  auto const executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer pause(executor);
  auto const deadline = steady_clock::now() + shuttle->gpu().patience();
  for (;;) {
    auto const reached = shuttle->has_moved(n);
    if (!reached) co_return reached.error();
    if (*reached) co_return ok();
    if (steady_clock::now() >= deadline) co_return shuttle->seen(shuttle->gpu().took_too_long("a copy"));
    pause.expires_after(between_looks);
    co_await pause.async_wait(boost::asio::use_awaitable);
  }
}

// Copies one piece that has arrived.
awaitable<Status> move_in(std::shared_ptr<tensors::Block const> block, std::byte* to,
                          std::span<std::byte const> piece) {
  auto const shuttle = co_await open_shuttle(std::move(block), Lane::in, 1);
  if (!shuttle) co_return shuttle.error();
  auto* const slot = (*shuttle)->slot(0).data();
  std::memcpy(slot, piece.data(), piece.size());
  if (auto const queued = (*shuttle)->move(0, to, slot, piece.size()); !queued) co_return queued;
  co_return co_await moved(*shuttle, 0);
}

// A download in progress.
struct Reading {
  Reading(std::shared_ptr<tensors::Block const> b, std::span<std::byte const> part, tensors::Pool& p, Helper& h)
      : block(std::move(b)), left(part), pool(p), helper(h) {}

  std::shared_ptr<tensors::Block const> block;
  std::span<std::byte const> left;  // on the GPU
  tensors::Pool& pool;
  Helper& helper;
  struct Piece {
    std::shared_ptr<tensors::Block> buffer;
    std::size_t bytes;
  };
  std::deque<Piece> pieces;  // that have arrived from the GPU
};

// Fetches the next pieces: one arrives while the one before is copied to ordinary memory.
awaitable<Status> move_out(std::shared_ptr<Reading> reading) {
  std::vector<Reading::Piece> next;
  for (auto left = reading->left.size(); left != 0 && next.size() < 2; left -= next.back().bytes) {
    auto const bytes = std::min<std::size_t>(left, PinnedPool::slot_bytes);
    auto buffer = co_await acquire_prepared(reading->pool, reading->helper, bytes);
    if (!buffer && next.empty()) co_return buffer.error();
    if (!buffer) break;
    next.push_back({std::move(*buffer), bytes});
  }
  if (next.empty()) co_return ok();
  auto const opened = co_await open_shuttle(reading->block, Lane::out, next.size());
  if (!opened) co_return opened.error();
  auto const& shuttle = *opened;
  next.resize(std::min(next.size(), shuttle->slots()));
  for (std::size_t n = 0; n < next.size(); ++n) {
    auto const queued = shuttle->move(n, shuttle->slot(n).data(), reading->left.data(), next[n].bytes);
    if (!queued) co_return queued;
    reading->left = reading->left.subspan(next[n].bytes);
  }
  for (std::size_t n = 0; n < next.size(); ++n) {
    if (auto const there = co_await moved(shuttle, n); !there) co_return there;
    std::memcpy(next[n].buffer->data(), shuttle->slot(n).data(), next[n].bytes);
    reading->pieces.push_back(std::move(next[n]));
  }
  co_return ok();
}

awaitable<std::string> next_piece(std::shared_ptr<Reading> reading) {
  if (reading->pieces.empty())
    if (auto const status = co_await move_out(reading); !status) {
      spdlog::error("a tensor was sent in part: {}", status.error().detail);
      reading->left = {};  // nothing after a gap is sent
    }
  if (reading->pieces.empty()) co_return std::string();
  auto const piece = std::move(reading->pieces.front());
  reading->pieces.pop_front();
  co_return std::string(reinterpret_cast<char const*>(piece.buffer->data()), piece.bytes);
}

}  // namespace

awaitable<Result<std::shared_ptr<tensors::Block>>> acquire_on_gpu(devices::GpuUnit& gpu, std::uint64_t bytes,
                                                                  Helper& helper) {
  if (gpu.arena_if_any() == nullptr) {
    auto const take_arena = [&gpu] { return gpu.arena().has_value(); };  // an error here occurs again below
    static_cast<void>(co_await helper.compute(take_arena));
  }
  co_return tensors::acquire_on(gpu, bytes);
}

awaitable<Checked<std::string>> receive_on_gpu(http::Body& body, std::shared_ptr<tensors::Block> block,
                                               std::optional<DigestAlgorithm> digest, tensors::Pool& pool,
                                               Helper& helper) {
  if (auto const why = block->gpu()->lost()) co_return to_problem(Error(devices::GpuErrc::lost, *why));
  auto left = block->bytes();
  auto const acquired =
      co_await acquire_prepared(pool, helper, std::min<std::uint64_t>(left.size(), PinnedPool::slot_bytes));
  if (!acquired) co_return to_problem(acquired.error());
  auto const buffer = *acquired;
  auto const digester = digest ? std::make_shared<Digester>(*digest) : nullptr;
  do {
    auto const piece = buffer->bytes().first(std::min(left.size(), buffer->size_bytes()));
    auto const read = co_await body.read_exactly(piece);
    if (!read) co_return read.error();
    if (digester != nullptr) {
      auto const add = [buffer, digester, piece] {
        digester->add(piece);
        return ok();
      };
      static_cast<void>(co_await helper.compute(add));
    }
    if (auto const there = co_await move_in(block, left.data(), piece); !there) co_return to_problem(there.error());
    left = left.subspan(piece.size());
  } while (!left.empty());
  co_return digester != nullptr ? digester->finish().base64 : std::string();
}

awaitable<Checked<http::Stream>> stream_from_gpu(std::shared_ptr<tensors::Block const> block,
                                                 std::span<std::byte const> bytes, tensors::Pool& pool,
                                                 Helper& helper) {
  auto const reading = std::make_shared<Reading>(std::move(block), bytes, pool, helper);
  if (auto const status = co_await move_out(reading); !status) co_return to_problem(status.error());
  co_return http::Stream([reading] { return next_piece(reading); });
}

Result<Digest> digest_of(tensors::Block const& block, DigestAlgorithm algorithm) {
  if (block.gpu() == nullptr) return digest(algorithm, block.bytes());
  Digester digester(algorithm);
  auto const read = block.gpu()->read(block.bytes(), [&](std::span<std::byte const> piece) { digester.add(piece); });
  if (!read) return read.error();
  return digester.finish();
}

}  // namespace chorus::service
