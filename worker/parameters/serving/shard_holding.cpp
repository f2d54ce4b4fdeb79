// ShardHost's part for checkpoints: brings all shards of a parameter to the same place among its pushes. All stop
// between two pushes, report their places, and go on to the place of the one that is farthest.
#include <algorithm>
#include <boost/asio/use_awaitable.hpp>

#include "http/api/cluster/membership.hpp"
#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

constexpr std::chrono::minutes until_it_is_written{10};
constexpr std::chrono::seconds after_the_hold{5};  // for an image, if the place was not reached

// Returns the name in "nightly/7".
std::string_view name_of(std::string_view checkpoint) { return checkpoint.substr(0, checkpoint.rfind('/')); }

std::pair<std::uint64_t, std::uint64_t> order_of(Window::Entry const& entry) {
  return {entry.incarnation, entry.next_sequence};
}

Window::Entries entries_of(std::vector<api::ShardClient> const& clients) {
  Window::Entries entries;
  for (auto const& client : clients)
    entries[client.name] = {api::from_hex(client.incarnation).value_or(0), client.next_sequence};
  return entries;
}

// Returns the place of an image; in rounds that at the end of the last round. Clients without an applied push are left
// out.
std::vector<api::ShardClient> place_of(ShardImage const& image) {
  auto clients = image.state.clients;
  std::erase_if(clients, [](auto const& client) { return client.next_sequence == 0; });
  return clients;
}

}  // namespace

std::vector<api::ShardClient> ShardHost::place() const {
  ShardImage nothing;
  nothing.state = shard_->state();
  leave_open_round(nothing);
  return place_of(nothing);
}

bool ShardHost::is_held_back(Push const& push) const {
  if (!hold_) return false;
  if (!hold_->place) return true;
  auto const there = hold_->place->find(push.client.name);
  return there == hold_->place->end() || std::pair(push.client.incarnation, push.sequence) >= order_of(there->second);
}

bool ShardHost::has_reached_place() const {
  auto const here = entries_of(place());
  return std::ranges::all_of(*hold_->place, [&](auto const& wanted) {
    auto const found = here.find(wanted.first);
    return found != here.end() && order_of(found->second) >= order_of(wanted.second);
  });
}

void ShardHost::let_go() {
  hold_.reset();
  changed_.notify_all();
}

asio::awaitable<void> ShardHost::end_hold(std::string checkpoint) {
  while (hold_ && hold_->checkpoint == checkpoint && steady_clock::now() < hold_->until)
    co_await changed_.wait_until(hold_->until);
  if (hold_ && hold_->checkpoint == checkpoint) let_go();
}

asio::awaitable<http::Checked<std::vector<api::ShardClient>>> ShardHost::hold(std::string checkpoint,
                                                                              http::TimePoint until) {
  auto const self = shared_from_this();
  while (hold_ && !closed_ && steady_clock::now() < until) co_await changed_.wait_until(until);
  if (closed_) co_return *closed_;
  if (!serves()) co_return misdirected();
  if (hold_)
    co_return Problem(ProblemCode::deadline_exceeded, title() + " is held for checkpoint " + hold_->checkpoint);
  hold_ = Hold{checkpoint, until, std::nullopt};
  tasks_.spawn("hold of " + title(), end_hold(checkpoint));
  while (is_working_ && !closed_ && steady_clock::now() < until) co_await changed_.wait_until(until);
  if (closed_) co_return *closed_;
  if (!serves()) co_return misdirected();
  if (is_working_) co_return Problem(ProblemCode::deadline_exceeded, title() + " is applying a push");
  co_return place();
}

std::optional<Problem> ShardHost::aim(std::string const& checkpoint, std::vector<api::ShardClient> const& place) {
  if (!hold_ || hold_->checkpoint != checkpoint)
    return Problem(ProblemCode::out_of_order, title() + " is not held for checkpoint " + checkpoint + " any more");
  hold_->place = entries_of(place);
  changed_.notify_all();
  return std::nullopt;
}

asio::awaitable<http::Checked<std::vector<api::ShardClient>>> ShardHost::keep_image(std::string checkpoint) {
  auto const self = shared_from_this();
  auto const is_held = [&] { return hold_ && hold_->checkpoint == checkpoint && hold_->place; };
  while (is_held() && !closed_ && (is_working_ || !has_reached_place())) co_await changed_.wait_until(hold_->until);
  auto image = co_await this->image(steady_clock::now() + after_the_hold);
  if (is_held()) let_go();
  if (!image) co_return image.error();
  leave_open_round(*image);
  auto place = place_of(*image);
  // An earlier checkpoint of the same name was given up.
  std::erase_if(images_, [&](auto const& kept) { return name_of(kept.first) == name_of(checkpoint); });
  images_.insert_or_assign(checkpoint, std::move(*image));
  tasks_.spawn("image of " + title(), forget_image(checkpoint));
  co_return place;
}

// Drops an image that is not requested in time, because the coordinator may have died.
asio::awaitable<void> ShardHost::forget_image(std::string checkpoint) {
  auto const end = steady_clock::now() + until_it_is_written;
  while (images_.contains(checkpoint) && steady_clock::now() < end) co_await changed_.wait_until(end);
  images_.erase(checkpoint);
}

asio::awaitable<http::Checked<ShardImage>> ShardHost::image_for(std::string checkpoint, http::TimePoint deadline) {
  auto const self = shared_from_this();
  if (auto kept = images_.extract(checkpoint)) {
    changed_.notify_all();
    co_return std::move(kept.mapped());
  }
  auto now = co_await image(deadline);
  if (!now) co_return now.error();
  leave_open_round(*now);
  co_return std::move(*now);
}

}  // namespace chorus::parameters
