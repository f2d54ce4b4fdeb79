#include "worker/service/memory/prepared_memory.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>
#include <utility>

#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using tensors::Block;
using tensors::Pool;

// Blocks up to this size touch at most one unit of memory, which takes a few milliseconds.
constexpr std::uint64_t small_bytes = 64 << 10;
// Memory prepared ahead of the arriving bytes is at most as much as has arrived, and at most this: enough for several
// threads.
constexpr std::uint64_t ahead_bytes_max = 128 << 20;
constexpr std::uint64_t portions = 4;  // in which that is prepared
// Bytes read from the socket before the next portions are begun.
constexpr std::uint64_t read_bytes_max = 8 << 20;

}  // namespace

awaitable<Result<std::shared_ptr<Block>>> acquire_prepared(Pool& pool, Helper& helper, std::uint64_t bytes) {
  if (bytes <= small_bytes) co_return pool.acquire(bytes);
  if (auto kept = pool.acquire_kept(bytes)) co_return kept;
  auto const work = [&pool, bytes] { return pool.acquire(bytes); };
  co_return co_await helper.compute(work);
}

ArrivingBlock::ArrivingBlock(Pool& pool, Helper& helper, std::shared_ptr<Block> block)
    : pool_(pool), helper_(helper), block_(std::move(block)) {
  if (Pool::is_prepared(block_)) ready_ = planned_ = block_->size_bytes();
}

Result<std::shared_ptr<ArrivingBlock>> ArrivingBlock::announce(Pool& pool, Helper& helper, std::uint64_t bytes) {
  auto block = bytes <= small_bytes ? pool.acquire(bytes) : pool.announce(bytes);
  if (!block) return block.error();
  return std::make_shared<ArrivingBlock>(pool, helper, std::move(*block));
}

void ArrivingBlock::prepare_ahead() {
  auto const unit = Pool::prepare_unit_bytes;
  auto const ahead = std::clamp(read_, unit, ahead_bytes_max);
  auto const portion = std::max(ahead / portions / unit * unit, unit);
  while (planned_ < size_bytes() && planned_ < read_ + ahead) {
    auto const bytes = std::min(portion, size_bytes() - planned_);
    auto work = [&pool = pool_, block = block_, offset = planned_, bytes] {
      return pool.prepare(block, offset, bytes);
    };
    planned_ += bytes;
    portions_.push_back({planned_, helper_.start(std::move(work))});
  }
}

awaitable<Checked<std::span<std::byte>>> ArrivingBlock::room(std::uint64_t offset, std::uint64_t bytes) {
  for (;;) {
    if (failure_) co_return to_problem(*failure_);
    prepare_ahead();
    if (offset < ready_ || bytes == 0)
      co_return block_->bytes().subspan(offset, std::min({bytes, ready_ - offset, read_bytes_max}));
    auto const status = co_await portions_.front().status->take();
    if (!status) failure_ = status.error();
    ready_ = portions_.front().end;
    portions_.pop_front();
  }
}

awaitable<Checked<std::size_t>> ArrivingBlock::read(http::Body& body, std::uint64_t offset, std::uint64_t bytes) {
  auto const end = offset + bytes;
  do {
    auto const piece = co_await room(offset, end - offset);
    if (!piece) co_return piece.error();
    auto const read = co_await body.read_exactly(*piece);
    if (!read) co_return read.error();
    offset += piece->size();
    read_ = std::max(read_, offset);
  } while (offset < end);
  co_return bytes;
}

awaitable<std::optional<http::Problem>> ArrivingBlock::copy(std::span<std::byte const> from, std::uint64_t offset) {
  while (!from.empty()) {
    auto const piece = co_await room(offset, from.size());
    if (!piece) co_return piece.error();
    std::memcpy(piece->data(), from.data(), piece->size());
    from = from.subspan(piece->size());
    offset += piece->size();
    read_ = std::max(read_, offset);
    if (!from.empty())
      co_await boost::asio::post(boost::asio::use_awaitable);  // so that other work of the thread can run
  }
  co_return std::nullopt;
}

awaitable<Checked<std::shared_ptr<Block>>> receive_prepared(http::Body& body, std::uint64_t bytes, Pool& pool,
                                                            Helper& helper) {
  if (!pool.can_ever_have(bytes))
    co_return http::Problem(http::ProblemCode::payload_too_large,
                            std::to_string(bytes) + " bytes do not fit into all the memory that this worker may use: " +
                                std::to_string(pool.limit_bytes()) + " bytes, in whole pages (--memory-limit-bytes)");
  auto const arriving = ArrivingBlock::announce(pool, helper, bytes);
  if (!arriving) co_return to_problem(arriving.error());
  auto const read = co_await (*arriving)->read(body, 0, bytes);
  if (!read) co_return read.error();
  co_return (*arriving)->block();
}

}  // namespace chorus::service
