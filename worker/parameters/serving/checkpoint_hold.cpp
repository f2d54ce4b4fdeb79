#include "worker/parameters/serving/checkpoint_hold.hpp"

#include <algorithm>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "http/api/cluster/membership.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Place = CheckpointHold::Place;
using std::chrono::steady_clock;

constexpr std::chrono::minutes until_it_is_written{10};
constexpr std::chrono::seconds after_the_hold{5};  // for an image, if the place was not reached

// Returns the name in "nightly/7".
std::string_view name_of(std::string_view checkpoint) { return checkpoint.substr(0, checkpoint.rfind('/')); }

std::pair<std::uint64_t, std::uint64_t> order_of(Window::Entry const& entry) {
  return {entry.incarnation, entry.next_sequence};
}

Window::Entries entries_of(Place const& clients) {
  Window::Entries entries;
  for (auto const& client : clients)
    entries[client.name] = {api::from_hex(client.incarnation).value_or(0), client.next_sequence};
  return entries;
}

// Returns the place of an image; in rounds that at the end of the last round. Clients without an applied push are left
// out.
Place place_of(ShardImage const& image) {
  auto clients = image.state.clients;
  std::erase_if(clients, [](auto const& client) { return client.next_sequence == 0; });
  return clients;
}

}  // namespace

Place CheckpointHold::place() const {
  ShardImage nothing;
  nothing.state = copy_.shard().state();
  leave_open_round(nothing);
  return place_of(nothing);
}

bool CheckpointHold::holds_back(Push const& push) const {
  if (!hold_) return false;
  if (!hold_->place) return true;
  auto const there = hold_->place->find(push.client.name);
  return there == hold_->place->end() || std::pair(push.client.incarnation, push.sequence) >= order_of(there->second);
}

bool CheckpointHold::has_reached_place() const {
  auto const here = entries_of(place());
  return std::ranges::all_of(*hold_->place, [&](auto const& wanted) {
    auto const found = here.find(wanted.first);
    return found != here.end() && order_of(found->second) >= order_of(wanted.second);
  });
}

void CheckpointHold::let_go() {
  hold_.reset();
  copy_.changed().notify_all();
}

asio::awaitable<void> CheckpointHold::end_hold(std::string checkpoint) {
  while (is_for(checkpoint) && steady_clock::now() < hold_->until) co_await copy_.changed().wait_until(hold_->until);
  if (is_for(checkpoint)) let_go();
}

asio::awaitable<http::Checked<Place>> CheckpointHold::hold(std::string checkpoint, http::TimePoint until) {
  while (hold_ && !tenure_.is_closed() && steady_clock::now() < until) co_await copy_.changed().wait_until(until);
  if (auto problem = tenure_.why_not_serving()) co_return std::move(*problem);
  if (hold_)
    co_return Problem(ProblemCode::deadline_exceeded, tenure_.title() + " is held for checkpoint " + hold_->checkpoint);
  hold_ = Hold{checkpoint, until, std::nullopt};
  tasks_.spawn("hold of " + tenure_.title(), end_hold(checkpoint));
  if (auto problem = co_await copy_.until_between_pushes(until)) co_return std::move(*problem);
  co_return place();
}

std::optional<Problem> CheckpointHold::aim(std::string const& checkpoint, Place const& place) {
  if (!is_for(checkpoint))
    return Problem(ProblemCode::out_of_order,
                   tenure_.title() + " is not held for checkpoint " + checkpoint + " any more");
  hold_->place = entries_of(place);
  copy_.changed().notify_all();
  return std::nullopt;
}

asio::awaitable<http::Checked<Place>> CheckpointHold::keep_image(std::string checkpoint) {
  auto const is_held = [&] { return is_for(checkpoint) && hold_->place; };
  while (is_held() && !tenure_.is_closed() && (copy_.is_working() || !has_reached_place()))
    co_await copy_.changed().wait_until(hold_->until);
  auto image = co_await this->image(steady_clock::now() + after_the_hold);
  if (is_held()) let_go();
  if (!image) co_return image.error();
  leave_open_round(*image);
  auto place = place_of(*image);
  // An earlier checkpoint of the same name was given up.
  std::erase_if(images_, [&](auto const& kept) { return name_of(kept.first) == name_of(checkpoint); });
  images_.insert_or_assign(checkpoint, std::move(*image));
  tasks_.spawn("image of " + tenure_.title(), forget_image(checkpoint));
  co_return place;
}

// Drops an image that is not requested in time, because the coordinator may have died.
asio::awaitable<void> CheckpointHold::forget_image(std::string checkpoint) {
  auto const end = steady_clock::now() + until_it_is_written;
  while (images_.contains(checkpoint) && steady_clock::now() < end) co_await copy_.changed().wait_until(end);
  images_.erase(checkpoint);
}

asio::awaitable<http::Checked<ShardImage>> CheckpointHold::image_for(std::string checkpoint, http::TimePoint deadline) {
  if (auto kept = images_.extract(checkpoint)) {
    copy_.changed().notify_all();
    co_return std::move(kept.mapped());
  }
  auto now = co_await image(deadline);
  if (now) leave_open_round(*now);
  co_return now;
}

asio::awaitable<http::Checked<ShardImage>> CheckpointHold::image(http::TimePoint deadline) {
  ShardCopy::Pause const pause(copy_);
  if (auto problem = co_await copy_.until_between_pushes(deadline)) co_return std::move(*problem);
  auto taken = co_await copy_.image();
  if (!taken) co_return Problem(ProblemCode::unavailable, taken.error().detail);
  co_return std::move(*taken);
}

}  // namespace chorus::parameters
