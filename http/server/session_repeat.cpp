// Repeated requests of a client, such as the pulls of a training loop, consist of the same bytes. They are not parsed
// again, and the header of the answer is not written again; authorization is checked each time.
#include <algorithm>

#include "http/auth/guard.hpp"
#include "http/server/session.hpp"

namespace chorus::http {

namespace asio = boost::asio;

// Stores a request when it comes for the second time.
void Session::note_repetition(Incoming incoming, unsigned status, Again again) {
  repeated_.reset();
  if (asked_.empty() || incoming.framing.kind != Framing::Kind::none) return;
  if (asked_ != asked_before_) {
    asked_before_ = asked_;
    return;
  }
  repeated_ = std::make_unique<Repeated>();
  repeated_->match = context_.router.match(incoming.request);
  repeated_->asked = asked_;
  repeated_->incoming = std::move(incoming);
  repeated_->status = status;
  repeated_->head = head_;
  constexpr std::string_view before_date = "\r\nDate: ";
  repeated_->date_at = head_.rfind(before_date) + before_date.size();
  repeated_->again = std::move(again);
}

asio::awaitable<Session::Next> Session::answer_again() {
  auto& known = *repeated_;
  auto* const guard = context_.door.guard;
  for (;;) {
    if (wire_.buffered().empty()) {
      wire_.set_patience({.until = std::chrono::steady_clock::now() + context_.limits.idle_timeout});
      if (auto const more = co_await wire_.receive(); more.error) co_return Next::close;
    }
    if (!wire_.buffered().starts_with(known.asked)) break;
    auto payload = known.again();
    if (!payload || (guard != nullptr && guard->stop(known.incoming.request, known.match))) break;
    started_ = std::chrono::steady_clock::now();
    InFlight const counted(context_.in_flight);
    wire_.consume(known.asked.size());
    auto const sent = co_await send_again(std::move(*payload));
    observe(Method::get, known.match.pattern, known.status, started_);
    if (!sent) co_return Next::close;
  }
  repeated_.reset();
  co_return Next::request;
}

asio::awaitable<bool> Session::send_again(SharedBytes payload) {
  auto const date = context_.date.now();
  repeated_->head.replace(repeated_->date_at, date.size(), date);
  std::string_view head = repeated_->head;
  auto body = payload.bytes;
  auto const sent = wire_.write_now(head, body);
  if (sent == head.size() + body.size()) co_return true;
  wire_.set_patience(body_patience());
  auto const of_head = std::min(sent, head.size());
  head.remove_prefix(of_head);
  body = body.subspan(sent - of_head);
  auto const rest = co_await wire_.write(head, body);
  if (rest.error == HttpErrc::timed_out) drop_unsent();
  co_return !rest.error;
}

}  // namespace chorus::http
