#include "worker/parameters/serving/shard_reader.hpp"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <string>
#include <utility>

namespace chorus::parameters {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

std::optional<ShardView> ShardReader::view_now() const {
  auto const& shard = copy_.shard();
  if (tenure_.is_closed() || !tenure_.is_owner() || tenure_.is_suspended() || copy_.offload().is_writing() ||
      !shard.values())
    return std::nullopt;
  return ShardView{shard.values(), shard.version(), tenure_.epoch()};
}

// Makes the copy of the GPU's values for readers, unless another call is making it.
asio::awaitable<std::optional<Problem>> ShardReader::download(http::TimePoint deadline) {
  if (copy_.offload().is_lent()) {
    if (steady_clock::now() >= deadline)
      co_return Problem(ProblemCode::deadline_exceeded, tenure_.title() + " is being read from its device");
    co_await copy_.changed().wait_until(deadline);
    co_return std::nullopt;
  }
  auto const downloaded = co_await copy_.offload().download();
  if (!downloaded) co_return copy_.heed(downloaded.error());
  co_return std::nullopt;
}

asio::awaitable<http::Checked<ShardView>> ShardReader::view(ReadConstraints constraints, http::TimePoint deadline) {
  auto const min_version = constraints.min_version, clock = constraints.clock;
  auto const& offload = copy_.offload();
  for (bool has_waited = false;; has_waited = true) {
    if (auto problem = tenure_.why_not_serving()) co_return std::move(*problem);
    // After each wait the shard object may have been replaced.
    auto const& shard = copy_.shard();
    auto const is_open = !clock || shard.clocks().is_open(*clock);
    auto const is_new = !min_version || shard.version() >= *min_version;
    if (is_open && is_new && !offload.is_writing()) {
      if (shard.values()) break;
      if (auto problem = co_await download(deadline)) co_return std::move(*problem);
      continue;
    }
    if (steady_clock::now() >= deadline) {
      auto const why = is_open ? "version " + std::to_string(min_version.value_or(0)) + " was asked for, " +
                                     std::to_string(shard.version()) + " is the newest"
                               : shard.why_clock_waits(*clock);
      co_return Problem(ProblemCode::deadline_exceeded, tenure_.title() + ": " + why);
    }
    if (!has_waited && !offload.is_writing() && tools_.events.waited) tools_.events.waited("pull");
    co_await copy_.changed().wait_until(deadline);
  }
  auto const& clocks = copy_.shard().clocks();
  if (clock && clocks.count() && tools_.events.read_behind)
    tools_.events.read_behind(*clock - std::min(*clock, clocks.slowest()));
  co_return ShardView{copy_.shard().values(), copy_.shard().version(), tenure_.epoch(), tenure_.is_suspended()};
}

// Copies many rows on another thread, while no push creates or changes rows.
asio::awaitable<http::Checked<ShardView>> ShardReader::copy_rows(ReadConstraints constraints,
                                                                 std::span<std::uint64_t const> rows,
                                                                 std::span<std::byte> into, http::TimePoint deadline) {
  auto seen = co_await view(constraints, deadline);
  if (!seen) co_return seen.error();
  if (into.size() <= ShardOffload::inline_bytes) {
    copy_.shard().copy_rows(rows, into);
    co_return seen;
  }
  seen->values = nullptr;
  while (copy_.push_waits() && !tenure_.is_closed() && steady_clock::now() < deadline)
    co_await copy_.changed().wait_until(deadline);
  ShardCopy::Pause const pause(copy_);
  while (copy_.is_busy() && !tenure_.is_closed() && steady_clock::now() < deadline)
    co_await copy_.changed().wait_until(deadline);
  if (copy_.is_busy()) co_return copy_.is_applying(ProblemCode::deadline_exceeded);
  // The version may have changed meanwhile.
  ReadConstraints const newest;
  seen = co_await view(newest, deadline);
  if (!seen) co_return seen.error();
  co_await copy_.offload().copy_rows(rows, into);
  co_return seen;
}

}  // namespace chorus::parameters
