#include "server/coordinator/events/events.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/json/json.hpp"
#include "server/coordinator/journal/journal_state.hpp"
#include "server/coordinator/text/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::size_t piece_bytes = 64 << 10;  // approximate size of the pieces that are sent

std::string sent(EventPosition const& position, std::string_view type, std::string const& data) {
  return "id: " + to_string(position) + "\nevent: " + std::string(type) + "\ndata: " + data + "\n\n";
}

std::string sent_event(std::uint64_t log, api::Event const& event) {
  return sent({log, event.sequence}, event.type, http::encode(event));
}

// A bookmark has the reader's position, and shows that the server is alive.
std::string bookmark(EventPosition const& position) {
  return sent(position, "bookmark", "{\"sequence\":" + std::to_string(position.sequence) + "}");
}

// A reset says that the reader has missed events, or follows another log than before.
std::string reset(EventPosition const& position, std::string const& why) {
  api::StreamReset const data{position.sequence, why};
  return sent(position, "reset", http::encode(data));
}

}  // namespace

struct Events::Reader {
  Reader(Events& e, std::uint64_t s, std::string g) : events(e), since(s), greeting(std::move(g)) { ++events.streams_; }
  ~Reader() {
    --events.streams_;
    events.closed_one_.notify_all();
  }
  Reader(Reader const&) = delete;
  Reader& operator=(Reader const&) = delete;

  Events& events;
  std::uint64_t since;
  std::string greeting;  // until it has been sent
};

Events::Events(asio::any_io_executor executor, Journal& journal, EventLimits limits, std::uint64_t log)
    : journal_(journal), limits_(limits), log_(log), closed_one_(std::move(executor)) {
  CHORUS_ASSERT(log != 0, "a log has an id");
}

// Keeps the events after the last gap: a journal may have more events than the ring, or miss one because of a defect.
void Events::restore(std::vector<api::Event> events, std::optional<std::uint64_t> log) {
  if (log)
    log_ = *log;
  else if (journal_.on_disk())
    journal_.write(row_of(Counter::event_log, log_));
  for (auto& event : events) {
    if (event.sequence != next_) ring_.clear();
    next_ = event.sequence + 1;
    ring_.push_back({std::move(event), 0});
  }
}

void Events::publish(api::Event event) {
  event.sequence = next_++;
  ++published_;
  event.at = rfc3339(wall_seconds());
  if (ring_.size() == limits_.kept) {
    if (journal_.on_disk()) journal_.write(without_event(ring_.front().event.sequence));
    ring_.pop_front();
  }
  // Only a journal with a file reads rows.
  auto row = journal_.on_disk() ? row_of(event) : Row{Table::events, "", std::nullopt};
  ring_.push_back({std::move(event), journal_.written() + 1});
  journal_.write(std::move(row));
  if (streams_ > 0) journal_.hurry();
}

std::uint64_t Events::newest() const {
  auto const hidden = std::ranges::upper_bound(ring_, journal_.durable(), {}, &Entry::written);
  return oldest() + static_cast<std::uint64_t>(hidden - ring_.begin()) - 1;
}

std::optional<Problem> Events::refuse(EventPosition const& since) const {
  auto const last = newest();
  auto const number = std::to_string(since.sequence);
  if (since.log != 0 && since.log != log_)
    return Problem(ProblemCode::bad_request, "position " + to_string(since) +
                                                 " is of another event log than this one, " + api::to_hex(log_) +
                                                 ": begin anew");
  if (since.sequence > last)
    return Problem(ProblemCode::bad_request, "since is " + number + ", and the newest event is " +
                                                 std::to_string(last) + ": it is of another coordinator");
  if (since.sequence + 1 < oldest())
    return Problem(ProblemCode::compacted, "the events after " + number + " are no longer all kept: the oldest is " +
                                               std::to_string(oldest()) + ", the newest " + std::to_string(last));
  return std::nullopt;
}

http::Checked<api::EventList> Events::page(EventPosition since, std::size_t limit) const {
  if (auto problem = refuse(since)) return std::move(*problem);
  api::EventList list;
  list.log = api::to_hex(log_);
  auto const last = newest();
  for (auto sequence = since.sequence + 1; sequence <= last && list.items.size() < limit; ++sequence)
    list.items.push_back(ring_[sequence - oldest()].event);
  if (!list.items.empty() && list.items.back().sequence < last)
    list.next_cursor = std::to_string(list.items.back().sequence);
  return list;
}

asio::awaitable<void> Events::settle() const { static_cast<void>(co_await journal_.flush()); }

http::Checked<http::Stream> Events::follow(std::optional<EventPosition> since) {
  auto const from = since.value_or(EventPosition{log_, newest()});
  if (auto problem = refuse(from)) return std::move(*problem);
  return stream(from.sequence, bookmark({log_, from.sequence}));
}

http::Checked<http::Stream> Events::resume(EventPosition last) {
  auto const refused = refuse(last);
  if (!refused) return follow(last);
  EventPosition const from{log_, oldest() - 1};
  return stream(from.sequence, reset(from, refused->detail));
}

http::Checked<http::Stream> Events::stream(std::uint64_t since, std::string greeting) {
  if (closing_ || streams_ == limits_.streams) {
    Problem problem(ProblemCode::unavailable, closing_ ? "the coordinator is stopping"
                                                       : std::to_string(streams_) + " streams of events are open");
    problem.retry_after_s = 5;
    return problem;
  }
  auto const reader = std::make_shared<Reader>(*this, since, std::move(greeting));
  journal_.hurry();
  return http::Stream([this, reader] { return next(reader); });
}

asio::awaitable<std::string> Events::next(std::shared_ptr<Reader> reader) {
  auto piece = std::exchange(reader->greeting, {});
  if (!piece.empty()) co_return piece;
  auto const until = Clock::now() + limits_.bookmark;
  while (newest() <= reader->since && !closing_ && Clock::now() < until) co_await journal_.changed().wait_until(until);
  // The ring has overtaken the reader: the stream ends, and its resumption gets 410.
  if (reader->since + 1 < oldest()) {
    ++dropped_;
    co_return piece;
  }
  for (auto const last = newest(); reader->since < last && piece.size() < piece_bytes; ++reader->since)
    piece += sent_event(log_, ring_[reader->since + 1 - oldest()].event);
  if (piece.empty() && !closing_) piece = bookmark({log_, reader->since});
  co_return piece;
}

asio::awaitable<void> Events::close(Clock::time_point deadline) {
  closing_ = true;
  journal_.changed().notify_all();
  while (streams_ > 0 && Clock::now() < deadline) co_await closed_one_.wait_until(deadline);
}

}  // namespace chorus::coordinator
