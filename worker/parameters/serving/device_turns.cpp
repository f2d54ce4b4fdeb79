// What a host does with a shard on a GPU beside pushes: it is read for those who pull and for backups, and written from
// an image, by one at a time; and its device may fail.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/until_done_there.hpp"
#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

using Values = Result<std::shared_ptr<tensors::Block>>;

asio::awaitable<Values> download_there(Shard const* shard) { co_return shard->download(); }
asio::awaitable<Result<ShardImage>> image_there(Shard* shard) { co_return shard->image(); }
asio::awaitable<Status> settle_there(Shard* shard) { co_return shard->settle(); }

}  // namespace

// As long as somebody waits for the device, also when its coroutine is cancelled.
class ShardHost::DeviceTurn {
 public:
  explicit DeviceTurn(ShardHost& host) : host_(host) { host_.uses_device_ = true; }
  ~DeviceTurn() {
    host_.uses_device_ = false;
    host_.changed_.notify_all();
  }
  DeviceTurn(DeviceTurn const&) = delete;
  DeviceTurn& operator=(DeviceTurn const&) = delete;

 private:
  ShardHost& host_;
};

// Nobody knows what the shard has now. Whoever owned it is as a backup that waits for an image, and says so; the
// coordinator finds another owner.
Problem ShardHost::break_down(Error const& why) {
  broken_ = Problem(ProblemCode::unavailable, title() + " has been lost with its device: " + why.detail);
  broken_->retry_after_s = 1;
  if (role_ == Role::owner) step_down();
  is_complete_ = false;
  has_image_ = false;
  changed_.notify_all();
  if (tools_.events.lost) tools_.events.lost(spec_.parameter, spec_.index, why.detail);
  return *broken_;
}

// Of what only reads the device.
Problem ShardHost::heed(Error const& error) {
  auto const* const unit = shard_->gpu();
  if (unit != nullptr && unit->lost() && !broken_) return break_down(error);
  Problem problem(ProblemCode::unavailable, error.detail);
  problem.retry_after_s = 1;
  return problem;
}

// The copy of this version that readers are given, if nobody else has made it meanwhile.
asio::awaitable<std::optional<Problem>> ShardHost::download(http::TimePoint deadline) {
  if (uses_device_) {
    if (steady_clock::now() >= deadline)
      co_return Problem(ProblemCode::deadline_exceeded, title() + " is being read from its device");
    co_await changed_.wait_until(deadline);
    co_return std::nullopt;
  }
  Values values = Error();
  {
    DeviceTurn const turn(*this);
    values = co_await asio::co_spawn(tools_.threads, download_there(shard_.get()), http::until_done_there());
    if (values) shard_->keep(*values);
  }
  if (!values) co_return heed(values.error());
  co_return std::nullopt;
}

// Between two pushes.
asio::awaitable<Result<ShardImage>> ShardHost::take_image() {
  if (shard_->gpu() == nullptr) co_return shard_->image();
  while (uses_device_) co_await changed_.wait_until(http::TimePoint::max());
  Result<ShardImage> image = Error();
  {
    DeviceTurn const turn(*this);
    image = co_await asio::co_spawn(tools_.threads, image_there(shard_.get()), http::until_done_there());
  }
  if (!image) (void)heed(image.error());
  co_return image;
}

asio::awaitable<std::optional<Problem>> ShardHost::end_image(std::uint64_t image, api::ShardState state,
                                                             std::uint32_t epoch) {
  auto const self = shared_from_this();
  if (auto problem = not_following(epoch)) co_return problem;
  if (image == 0 || image != arriving_image_ || uses_device_)
    co_return Problem(ProblemCode::out_of_order, "this image of " + title() + " has not begun here");
  if (shard_->gpu() != nullptr) {
    auto settled = ok();
    {
      DeviceTurn const turn(*this);
      settled = co_await asio::co_spawn(tools_.threads, settle_there(shard_.get()), http::until_done_there());
    }
    if (!settled) co_return heed(settled.error());
    if (auto problem = not_following(epoch)) co_return problem;
  }
  arriving_image_ = 0;
  if (!shard_->restore(state)) co_return Problem(ProblemCode::mismatch, "the state does not fit " + title());
  has_image_ = true;
  broken_.reset();
  co_return std::nullopt;
}

}  // namespace chorus::parameters
