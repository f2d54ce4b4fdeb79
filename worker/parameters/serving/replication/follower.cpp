#include "worker/parameters/serving/replication/follower.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/json/json.hpp"
#include "worker/parameters/serving/access/push_fields.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr std::uint64_t piece_bytes = 1 << 20;  // of an image
constexpr std::chrono::seconds piece_patience{10};

void write_history(std::optional<std::uint64_t> history, http::Fields& fields) {
  if (history) fields.set("Chorus-History", std::to_string(*history));
}

}  // namespace

asio::awaitable<Follower::Sent> Follower::call(http::Call call, http::TimePoint deadline) {
  call.fields.set("Chorus-Epoch", std::to_string(address_.epoch));
  call.answer_limit_bytes = 64 << 10;
  call.repeatable = true;
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (!answer) co_return Sent::unreachable;
  if (answer->ok()) co_return Sent::taken;
  co_return answer->problem().code == http::ProblemCode::epoch_fenced ? Sent::fenced : Sent::refused;
}

asio::awaitable<Follower::Sent> Follower::send(LogEntry entry, http::TimePoint deadline) {
  http::Call post;
  post.method = http::Method::post;
  post.url = address_.path + "/log";
  post.fields.set("Chorus-Position", std::to_string(entry.position));
  post.fields.set("Chorus-Kind", std::string(name(entry.push.kind)));
  write_history(entry.history, post.fields);
  write_push(entry.push, post.fields);
  if (entry.push.kind == PushKind::clients)
    post.body = client_lines(entry.push.clients);
  else
    post.payload = entry.push.data->bytes();
  post.fields.set("Content-Type", "application/octet-stream");
  co_return co_await call(std::move(post), deadline);
}

asio::awaitable<Follower::Sent> Follower::send_image(std::shared_ptr<ShardImage const> whole,
                                                     std::uint64_t bytes_per_second) {
  // The number distinguishes this image from an earlier one that was not completed.
  auto const number = std::to_string(steady_clock::now().time_since_epoch().count());
  auto next = steady_clock::now();
  for (auto const& array : whole->arrays) {
    auto const total = array.content.bytes.size();
    for (std::uint64_t at = 0; at < total || (at == 0 && total == 0); at += piece_bytes) {
      if (is_dropped) co_return Sent::fenced;
      http::Call put;
      put.method = http::Method::put;
      put.url = address_.path + "/arrays/" + array.name + "?offset=" + std::to_string(at) +
                "&bytes=" + std::to_string(total) + "&image=" + number;
      auto const bytes = std::min(piece_bytes, total - at);
      put.payload = array.content.bytes.subspan(at, bytes);
      put.fields.set("Content-Type", "application/octet-stream");
      if (auto const sent = co_await call(std::move(put), steady_clock::now() + piece_patience); sent != Sent::taken)
        co_return sent;
      next += std::chrono::nanoseconds(bytes * 1'000'000'000 / bytes_per_second);
      asio::steady_timer pause(co_await asio::this_coro::executor, next);
      if (next > steady_clock::now()) co_await pause.async_wait(asio::use_awaitable);
      if (total == 0) break;
    }
  }
  http::Call post;
  post.method = http::Method::post;
  post.url = address_.path + "/state?image=" + number;
  post.body = http::encode(whole->state);
  write_history(whole->history, post.fields);
  co_return co_await call(std::move(post), steady_clock::now() + piece_patience);
}

asio::awaitable<Follower::Sent> Follower::complete(std::uint64_t position, std::optional<std::uint64_t> history,
                                                   http::TimePoint deadline) {
  http::Call post;
  post.method = http::Method::post;
  post.url = address_.path + "/complete";
  post.fields.set("Chorus-Position", std::to_string(position));
  write_history(history, post.fields);
  co_return co_await call(std::move(post), deadline);
}

}  // namespace chorus::parameters
