// Runs long operations on a shard's memory or device on other threads, one at a time.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/runtime/condition.hpp"
#include "worker/parameters/shard/shard.hpp"

namespace chorus::parameters {

// A part of an array of an image.
struct ImagePiece {
  std::string array;
  std::uint64_t image = 0, offset = 0, bytes = 0;
};

// Used on the control thread. The objects that it refers to outlive it. Operations on at most inline_bytes run at once
// on the control thread.
class ShardOffload {
 public:
  static constexpr std::uint64_t inline_bytes = 512 << 10;

  // The shard object may be replaced between two turns. `changed` is notified at the end of each turn.
  ShardOffload(std::unique_ptr<Shard> const& shard, boost::asio::any_io_executor threads, http::Condition& changed)
      : shard_(shard), threads_(std::move(threads)), changed_(changed) {}
  ShardOffload(ShardOffload const&) = delete;
  ShardOffload& operator=(ShardOffload const&) = delete;

  [[nodiscard]] bool is_lent() const { return is_lent_; }        // to another thread
  [[nodiscard]] bool is_writing() const { return is_writing_; }  // the values are being written in place

  // These two use the push only, not the shard.
  boost::asio::awaitable<std::optional<http::Problem>> refuse(ShardSpec const& spec, Push push);  // Shard::refuse_data
  // Returns the number of elements that are NaN or infinite; sets them to 0 unless they are rejected.
  boost::asio::awaitable<std::uint64_t> settle_nonfinite(Push push, NonFinite nonfinite);

  // These wait for their turn.
  boost::asio::awaitable<std::optional<http::Problem>> lacks_room(Push const& push);
  // Allocates memory, which may take long. Readers wait meanwhile, because the values can be written in place only if
  // no reader holds them.
  boost::asio::awaitable<Result<Shard::Change>> prepare(Push push);
  boost::asio::awaitable<Result<ShardImage>> image();

  // These are called while the shard is not lent.
  boost::asio::awaitable<Status> compute(Shard::Change* change);
  // Makes the copy of the GPU's values that readers get.
  boost::asio::awaitable<Status> download();
  boost::asio::awaitable<void> copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into);
  boost::asio::awaitable<Result<std::unique_ptr<Shard>>> make_fresh(ShardSpec spec, ShardMemory memory);
  // False: the shard has no such array.
  boost::asio::awaitable<bool> take(ImagePiece piece, std::shared_ptr<tensors::Block const> content);
  // False: the state does not fit.
  boost::asio::awaitable<Result<bool>> restore(api::ShardState state);

 private:
  // Lends the shard to the other thread. Lasts until that thread has ended, also if the coroutine is cancelled.
  class Turn {
   public:
    explicit Turn(ShardOffload& offload) : offload_(offload) { offload_.is_lent_ = true; }
    ~Turn() {
      offload_.is_lent_ = false;
      offload_.changed_.notify_all();
    }
    Turn(Turn const&) = delete;
    Turn& operator=(Turn const&) = delete;

   private:
    ShardOffload& offload_;
  };

  std::unique_ptr<Shard> const& shard_;
  boost::asio::any_io_executor threads_;
  http::Condition& changed_;
  bool is_lent_ = false;
  bool is_writing_ = false;
};

}  // namespace chorus::parameters
