#include "worker/parameters/serving/copy/shard_copy.hpp"

#include <boost/asio/post.hpp>
#include <utility>

#include "base/runtime/pause.hpp"

namespace chorus::parameters {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

ShardCopy::ShardCopy(ShardTools const& tools, std::unique_ptr<Shard> shard, Tenure const& tenure,
                     http::Condition& changed, Lost lost)
    : tools_(tools),
      tenure_(tenure),
      changed_(changed),
      lost_(std::move(lost)),
      spec_(shard->spec()),
      shard_(std::move(shard)),
      offload_(shard_, tools.threads, changed) {}

ShardCopy::~ShardCopy() { replace(nullptr); }

// Frees the former shard on another thread, because freeing much memory takes long.
void ShardCopy::replace(std::unique_ptr<Shard> fresh) {
  asio::post(tools_.threads, [former = std::exchange(shard_, std::move(fresh))] {});
}

asio::awaitable<std::optional<Problem>> ShardCopy::refuse(Push push) {
  if (auto problem = co_await offload_.refuse(spec_, push)) co_return problem;
  co_return shard_->refuse_client(push);
}

asio::awaitable<std::optional<Problem>> ShardCopy::apply(Push push, Result<Shard::Change> change) {
  constexpr std::chrono::milliseconds before_repeating{10};
  for (;; change = Error()) {
    if (!change) change = co_await offload_.prepare(push);
    auto computed = change ? ok() : Status(change.error());
    if (change) computed = co_await offload_.compute(&*change);
    if (computed) {
      auto const rows_before = shard_->rows().value_or(0);
      shard_->finish(std::move(*change));
      history_.take(push);
      auto const created = shard_->rows().value_or(0) - rows_before;
      if (created > 0 && tenure_.is_owner() && tools_.events.rows_created) tools_.events.rows_created(created);
      co_return std::nullopt;
    }
    // If only memory was lacking, nothing has changed, and the push is tried again. A value can be written again, too.
    auto const is_lost = shard_->gpu() != nullptr && shard_->gpu()->lost();
    auto const may_repeat = !change || push.kind == PushKind::value;
    if (is_lost || !may_repeat) co_return break_down(computed.error());
    co_await http::pause(before_repeating);
  }
}

asio::awaitable<Result<ShardImage>> ShardCopy::image() {
  auto image = co_await offload_.image();
  if (!image && shard_->gpu() != nullptr) (void)heed(image.error());
  if (image) image->history = history_.now();
  co_return image;
}

void ShardCopy::end_work() {
  is_working_ = false;
  changed_.notify_all();
}

void ShardCopy::set_push_waits(bool waits) {
  if (std::exchange(push_waits_, waits) && !waits) changed_.notify_all();
}

asio::awaitable<std::optional<Problem>> ShardCopy::until_between_pushes(http::TimePoint deadline) {
  while (is_working_ && !tenure_.is_closed() && steady_clock::now() < deadline) co_await changed_.wait_until(deadline);
  if (auto problem = tenure_.why_not_serving()) co_return problem;
  if (is_working_) co_return is_applying(ProblemCode::deadline_exceeded);
  co_return std::nullopt;
}

Problem ShardCopy::is_applying(ProblemCode code) const { return {code, tenure_.title() + " is applying a push"}; }

Problem ShardCopy::heed(Error const& error) {
  auto const* const unit = shard_->gpu();
  if (unit != nullptr && unit->lost() && !broken_) return break_down(error);
  Problem problem(ProblemCode::unavailable, error.detail);
  problem.retry_after_s = 1;
  return problem;
}

Problem ShardCopy::break_down(Error const& why) {
  broken_ = Problem(ProblemCode::unavailable, tenure_.title() + " has been lost with its device: " + why.detail);
  broken_->retry_after_s = 1;
  lost_(why.detail);
  return *broken_;
}

}  // namespace chorus::parameters
