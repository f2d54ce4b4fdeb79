// Memory for the control thread, which must not wait for allocation: the first touch of a GiB takes seconds.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "http/message/message.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// Pool::acquire() for the control thread: at once if the pool has a kept block, and for small blocks; otherwise on the
// helper's threads. Pool and helper outlive the call.
[[nodiscard]] boost::asio::awaitable<Result<std::shared_ptr<tensors::Block>>> acquire_prepared(tensors::Pool& pool,
                                                                                               Helper& helper,
                                                                                               std::uint64_t bytes);

// A block that one or several request bodies fill from its start. Memory is allocated as bytes arrive, a little ahead
// of them, so announced bytes that never come take none.
//
// Used on the control thread only. Pool and helper outlive the block, and the block outlives its reads.
class ArrivingBlock {
 public:
  // Errors: see Pool::announce.
  [[nodiscard]] static Result<std::shared_ptr<ArrivingBlock>> announce(tensors::Pool& pool, Helper& helper,
                                                                       std::uint64_t bytes);

  ArrivingBlock(tensors::Pool& pool, Helper& helper, std::shared_ptr<tensors::Block> block);
  ArrivingBlock(ArrivingBlock const&) = delete;
  ArrivingBlock& operator=(ArrivingBlock const&) = delete;

  [[nodiscard]] std::uint64_t size_bytes() const { return block_->size_bytes(); }
  // Call when all bytes were read.
  [[nodiscard]] std::shared_ptr<tensors::Block> const& block() const { return block_; }

  // Reads the body's next `bytes` into the block at `offset`, which is at most the end of what was read before. One
  // read at a time. Problems: see Body::read_exactly; out_of_memory.
  boost::asio::awaitable<http::Checked<std::size_t>> read(http::Body& body, std::uint64_t offset, std::uint64_t bytes);
  // The same with bytes that were read before. They outlive the call.
  boost::asio::awaitable<std::optional<http::Problem>> copy(std::span<std::byte const> from, std::uint64_t offset);

 private:
  void prepare_ahead();
  // Waits until there is memory at `offset`. Returns the memory from there, `bytes` at most.
  boost::asio::awaitable<http::Checked<std::span<std::byte>>> room(std::uint64_t offset, std::uint64_t bytes);

  tensors::Pool& pool_;
  Helper& helper_;
  std::shared_ptr<tensors::Block> const block_;
  std::uint64_t read_ = 0;     // bytes have arrived up to here
  std::uint64_t ready_ = 0;    // memory is ready up to here
  std::uint64_t planned_ = 0;  // memory is being prepared up to here
  struct Portion {
    std::uint64_t end;
    std::shared_ptr<Pending<Status>> status;
  };
  std::deque<Portion> portions_;
  std::optional<Error> failure_;  // of a portion
};

// Reads the body's next `bytes` into a new block. Problems: payload_too_large for what the pool can never have;
// unavailable while it lacks memory; see Body::read_exactly.
[[nodiscard]] boost::asio::awaitable<http::Checked<std::shared_ptr<tensors::Block>>> receive_prepared(
    http::Body& body, std::uint64_t bytes, tensors::Pool& pool, Helper& helper);

}  // namespace chorus::service
