#include "worker/parameters/serving/copy/shard_offload.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstring>

#include "base/runtime/until_done_there.hpp"
#include "worker/parameters/optimizers/nonfinite.hpp"
#include "worker/parameters/serving/copy/slices.hpp"
#include "worker/parameters/shard/pushes/step.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using Values = Result<std::shared_ptr<tensors::Block>>;

// Size of the slices that threads compute: a slice with its state fits into a core's cache.
constexpr std::uint64_t slice_elements = 64 << 10;

// The functions below run on other threads.
asio::awaitable<std::optional<Problem>> refuse_there(ShardSpec const* spec, Push push) {
  co_return Shard::refuse_data(*spec, push);
}

std::uint64_t settle(Push const& push, NonFinite nonfinite) {
  auto const gradient = gradient_of(push);
  auto const found = count_nonfinite(push.dtype, gradient.bytes);
  if (found == 0 || nonfinite == NonFinite::reject) return found;
  // The block was made for this push and has no other user yet.
  auto* const bytes = const_cast<std::byte*>(gradient.bytes.data());
  zero_nonfinite(push.dtype, {bytes, gradient.bytes.size()});
  return found;
}

asio::awaitable<std::uint64_t> settle_there(Push push, NonFinite nonfinite) { co_return settle(push, nonfinite); }

asio::awaitable<std::optional<Problem>> look_for_room_there(Shard const* shard, Push const* push) {
  co_return shard->lacks_room(*push);
}

asio::awaitable<Result<Shard::Change>> prepare_there(Shard* shard, Push push) { co_return shard->prepare(push); }

asio::awaitable<Status> compute_there(Shard::Change* change, asio::any_io_executor threads) {
  if (auto begun = change->begin(); !begun) co_return begun;
  compute_in_slices(threads, change->elements(), slice_elements,
                    [change](std::uint64_t first, std::uint64_t count) { change->compute(first, count); });
  co_return ok();
}

asio::awaitable<Values> download_there(Shard const* shard) { co_return shard->download(); }
asio::awaitable<Result<ShardImage>> image_there(Shard* shard) { co_return shard->image(); }

asio::awaitable<void> copy_there(Shard const* shard, std::span<std::uint64_t const> rows, std::span<std::byte> into) {
  shard->copy_rows(rows, into);
  co_return;
}

asio::awaitable<Result<std::unique_ptr<Shard>>> make_there(ShardSpec spec, ShardMemory memory) {
  co_return Shard::make(std::move(spec), memory, Shard::Content::to_come);
}

// Copies a piece into its array. For some arrays, the first piece allocates the memory.
asio::awaitable<bool> take_there(Shard* shard, ImagePiece piece, std::shared_ptr<tensors::Block const> content) {
  auto const whole = shard->place_for(piece.array, piece.bytes);
  auto const bytes = content->bytes();
  if (whole.size() != piece.bytes || piece.offset > whole.size() || bytes.size() > whole.size() - piece.offset)
    co_return false;
  if (!bytes.empty()) std::memcpy(whole.data() + piece.offset, bytes.data(), bytes.size());
  co_return true;
}

asio::awaitable<Result<bool>> restore_there(Shard* shard, api::ShardState state) {
  if (auto const settled = shard->settle(); !settled) co_return settled.error();
  co_return shard->restore(state);
}

}  // namespace

asio::awaitable<std::optional<Problem>> ShardOffload::refuse(ShardSpec const& spec, Push push) {
  if (push.kind != PushKind::rows || push.rows * sizeof(std::uint64_t) <= inline_bytes)
    co_return Shard::refuse_data(spec, push);
  co_return co_await asio::co_spawn(threads_, refuse_there(&spec, push), http::until_done_there());
}

asio::awaitable<std::uint64_t> ShardOffload::settle_nonfinite(Push push, NonFinite nonfinite) {
  if (push.data->size_bytes() <= inline_bytes) co_return settle(push, nonfinite);
  co_return co_await asio::co_spawn(threads_, settle_there(push, nonfinite), http::until_done_there());
}

asio::awaitable<std::optional<Problem>> ShardOffload::lacks_room(Push const& push) {
  if (shard_->rows_to_look_at(push) * sizeof(std::uint64_t) <= inline_bytes) co_return shard_->lacks_room(push);
  while (is_lent_) co_await changed_.wait_until(http::TimePoint::max());
  Turn const turn(*this);
  co_return co_await asio::co_spawn(threads_, look_for_room_there(shard_.get(), &push), http::until_done_there());
}

asio::awaitable<Result<Shard::Change>> ShardOffload::prepare(Push push) {
  while (is_lent_) co_await changed_.wait_until(http::TimePoint::max());
  auto const pushed_bytes = push.data ? push.data->size_bytes() : 0;
  if (shard_->spec().bytes() <= inline_bytes && pushed_bytes <= inline_bytes) co_return shard_->prepare(push);
  Result<Shard::Change> change = Error();
  Turn const turn(*this);
  is_writing_ = true;
  change = co_await asio::co_spawn(threads_, prepare_there(shard_.get(), push), http::until_done_there());
  is_writing_ = false;
  co_return change;
}

asio::awaitable<Result<ShardImage>> ShardOffload::image() {
  if (shard_->gpu() == nullptr && shard_->spec().bytes() <= inline_bytes) co_return shard_->image();
  while (is_lent_) co_await changed_.wait_until(http::TimePoint::max());
  Turn const turn(*this);
  co_return co_await asio::co_spawn(threads_, image_there(shard_.get()), http::until_done_there());
}

asio::awaitable<Status> ShardOffload::compute(Shard::Change* change) {
  auto const on_gpu = shard_->gpu() != nullptr;
  if (change->bytes() <= inline_bytes && !on_gpu) co_return change->compute_all();
  is_writing_ = change->excludes_readers();
  is_lent_ = on_gpu;
  auto computed = co_await asio::co_spawn(threads_, compute_there(change, threads_), http::until_done_there());
  is_lent_ = false;
  is_writing_ = false;
  co_return computed;
}

asio::awaitable<Status> ShardOffload::download() {
  Turn const turn(*this);
  Values values = co_await asio::co_spawn(threads_, download_there(shard_.get()), http::until_done_there());
  if (!values) co_return values.error();
  shard_->keep(*values);
  co_return ok();
}

asio::awaitable<void> ShardOffload::copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into) {
  Turn const turn(*this);
  co_await asio::co_spawn(threads_, copy_there(shard_.get(), rows, into), http::until_done_there());
}

asio::awaitable<Result<std::unique_ptr<Shard>>> ShardOffload::make_fresh(ShardSpec spec, ShardMemory memory) {
  Turn const turn(*this);
  co_return co_await asio::co_spawn(threads_, make_there(std::move(spec), memory), http::until_done_there());
}

asio::awaitable<bool> ShardOffload::take(ImagePiece piece, std::shared_ptr<tensors::Block const> content) {
  Turn const turn(*this);
  co_return co_await asio::co_spawn(threads_, take_there(shard_.get(), std::move(piece), std::move(content)),
                                    http::until_done_there());
}

asio::awaitable<Result<bool>> ShardOffload::restore(api::ShardState state) {
  Turn const turn(*this);
  co_return co_await asio::co_spawn(threads_, restore_there(shard_.get(), std::move(state)), http::until_done_there());
}

}  // namespace chorus::parameters
