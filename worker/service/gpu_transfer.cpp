#include "worker/service/gpu_transfer.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "worker/service/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using devices::Lane;
using devices::PinnedPool;
using http::Checked;
using std::chrono::steady_clock;

constexpr std::chrono::microseconds between_looks{50};
// No copy of a slot takes longer on a device that works.
constexpr std::chrono::seconds patience{10};

// Two slots in turn: one is filled or emptied here while the device works on the other. What it is told to move stays.
class Shuttle {
 public:
  [[nodiscard]] static Checked<std::shared_ptr<Shuttle>> open(devices::GpuUnit& gpu, Lane lane) {
    if (auto const why = gpu.lost()) return to_problem(Error(devices::GpuErrc::lost, *why));
    auto first = gpu.pinned().take();
    if (!first) return to_problem(first.error());
    auto second = gpu.pinned().take();
    if (!second) return to_problem(second.error());
    auto session = gpu.session();
    if (!session) {
      gpu.saw(session.error());
      return to_problem(session.error());
    }
    return std::make_shared<Shuttle>(gpu, lane, std::array{std::move(*first), std::move(*second)}, std::move(*session));
  }

  Shuttle(devices::GpuUnit& gpu, Lane lane, std::array<devices::PinnedSlot, 2> slots,
          std::unique_ptr<devices::GpuSession> session)
      : gpu_(gpu), lane_(lane), slots_(std::move(slots)), session_(std::move(session)) {}
  ~Shuttle() {
    gpu_.count(session_->use());
    if (is_idle()) gpu_.give_back(std::move(session_));
  }
  Shuttle(Shuttle const&) = delete;
  Shuttle& operator=(Shuttle const&) = delete;

  [[nodiscard]] std::span<std::byte> slot(std::uint64_t n) const { return slots_[n % 2].bytes(); }

  // Of piece n, whose slot is part of it.
  [[nodiscard]] Status move(std::uint64_t n, std::byte* to, std::byte const* from, std::uint64_t bytes) {
    if (auto const queued = session_->copy(lane_, to, from, bytes); !queued) return seen(queued.error());
    auto const mark = session_->mark(lane_);
    if (!mark) return seen(mark.error());
    marks_[n % 2] = *mark;
    return ok();
  }

  [[nodiscard]] Result<bool> has_moved(std::uint64_t n) {
    auto reached = session_->reached(marks_[n % 2]);
    if (!reached) return seen(reached.error());
    return reached;
  }

  [[nodiscard]] Error seen(Error error) {
    has_failed_ = true;
    gpu_.saw(error);
    return error;
  }

  [[nodiscard]] std::string name() const { return devices::device_name(gpu_.gpu().info().index); }

 private:
  [[nodiscard]] bool is_idle() {
    if (has_failed_) return false;
    for (auto const mark : marks_)
      if (auto const reached = session_->reached(mark); !reached || !*reached) return false;
    return true;
  }

  devices::GpuUnit& gpu_;
  Lane const lane_;
  std::array<devices::PinnedSlot, 2> const slots_;
  std::unique_ptr<devices::GpuSession> session_;  // its end waits for what it still does with the slots
  std::array<devices::Mark, 2> marks_;
  bool has_failed_ = false;
};

// Until slot n % 2 is free.
awaitable<Status> moved(std::shared_ptr<Shuttle> shuttle, std::uint64_t n) {
  auto const executor = co_await boost::asio::this_coro::executor;
  boost::asio::steady_timer pause(executor);
  auto const deadline = steady_clock::now() + patience;
  for (;;) {
    auto const reached = shuttle->has_moved(n);
    if (!reached) co_return reached.error();
    if (*reached) co_return ok();
    if (steady_clock::now() >= deadline)
      co_return shuttle->seen(Error(devices::GpuErrc::lost, shuttle->name() + ": a copy took longer than 10 seconds"));
    pause.expires_after(between_looks);
    co_await pause.async_wait(boost::asio::use_awaitable);
  }
}

// A download that is under way.
struct Reading {
  Reading(std::shared_ptr<Shuttle> s, std::shared_ptr<tensors::Block const> b, std::span<std::byte const> part)
      : block(std::move(b)), bytes(part), shuttle(std::move(s)) {}

  std::shared_ptr<tensors::Block const> block;
  std::span<std::byte const> bytes;
  std::shared_ptr<Shuttle> shuttle;  // before the block: its end waits for what is under way
  std::uint64_t queued = 0;          // pieces
  std::uint64_t sent = 0;

  [[nodiscard]] std::uint64_t pieces() const {
    return (bytes.size() + PinnedPool::slot_bytes - 1) / PinnedPool::slot_bytes;
  }
  [[nodiscard]] std::span<std::byte const> piece(std::uint64_t n) const {
    auto const rest = bytes.subspan(n * PinnedPool::slot_bytes);
    return rest.first(std::min(rest.size(), PinnedPool::slot_bytes));
  }
  [[nodiscard]] Status queue_more() {
    for (; queued < pieces() && queued < sent + 2; ++queued) {
      auto const next = piece(queued);
      if (auto const status = shuttle->move(queued, shuttle->slot(queued).data(), next.data(), next.size()); !status)
        return status;
    }
    return ok();
  }
};

awaitable<std::string> next_piece(std::shared_ptr<Reading> reading) {
  auto status = reading->queue_more();
  if (status && reading->sent < reading->pieces()) status = co_await moved(reading->shuttle, reading->sent);
  if (!status) spdlog::error("a tensor was sent in part: {}", status.error().detail);
  if (!status || reading->sent == reading->pieces()) co_return std::string();
  auto const there = reading->shuttle->slot(reading->sent).first(reading->piece(reading->sent).size());
  ++reading->sent;
  co_return std::string(reinterpret_cast<char const*>(there.data()), there.size());
}

}  // namespace

awaitable<Checked<std::shared_ptr<tensors::Block>>> acquire_on_gpu(devices::GpuUnit& gpu, std::uint64_t bytes,
                                                                   Helper& helper) {
  if (gpu.arena_if_any() == nullptr) {
    auto const take_arena = [&gpu] {
      static_cast<void>(gpu.arena());  // what fails here fails below again
      return std::string();
    };
    static_cast<void>(co_await helper.compute(take_arena));
  }
  auto block = tensors::acquire_on(gpu, bytes);
  if (!block) co_return to_problem(block.error());
  co_return std::move(*block);
}

awaitable<Checked<std::string>> receive_on_gpu(http::Body& body, std::shared_ptr<tensors::Block> block,
                                               std::optional<DigestAlgorithm> digest, Helper& helper) {
  auto opened = Shuttle::open(*block->gpu(), Lane::in);
  if (!opened) co_return opened.error();
  auto const shuttle = std::move(*opened);
  auto const digester = digest ? std::make_shared<Digester>(*digest) : nullptr;
  auto left = block->bytes();
  std::uint64_t n = 0;
  do {
    if (auto const is_free = co_await moved(shuttle, n); !is_free) co_return to_problem(is_free.error());
    auto const piece = shuttle->slot(n).first(std::min(left.size(), PinnedPool::slot_bytes));
    auto const read = co_await body.read_exactly(piece);
    if (!read) co_return read.error();
    if (digester != nullptr) {
      auto const add = [shuttle, digester, piece] {
        digester->add(piece);
        return std::string();
      };
      static_cast<void>(co_await helper.compute(add));
    }
    if (auto const queued = shuttle->move(n, left.data(), piece.data(), piece.size()); !queued)
      co_return to_problem(queued.error());
    left = left.subspan(piece.size());
    ++n;
  } while (!left.empty());
  for (auto last = n; last < n + 2; ++last)
    if (auto const there = co_await moved(shuttle, last); !there) co_return to_problem(there.error());
  co_return digester != nullptr ? digester->finish().base64 : std::string();
}

awaitable<Checked<http::Stream>> stream_from_gpu(std::shared_ptr<tensors::Block const> block,
                                                 std::span<std::byte const> bytes) {
  auto shuttle = Shuttle::open(*block->gpu(), Lane::out);
  if (!shuttle) co_return shuttle.error();
  auto const reading = std::make_shared<Reading>(std::move(*shuttle), std::move(block), bytes);
  auto status = reading->queue_more();
  if (status) status = co_await moved(reading->shuttle, 0);
  if (!status) co_return to_problem(status.error());
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
