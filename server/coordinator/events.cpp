#include "server/coordinator/events.hpp"

#include <algorithm>

#include "http/json.hpp"
#include "server/coordinator/kept.hpp"
#include "server/coordinator/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::size_t piece_bytes = 64 << 10;  // about; sent at once

std::string sent_event(api::Event const& event) {
  return "id: " + std::to_string(event.sequence) + "\nevent: " + event.type + "\ndata: " + http::encode(event) + "\n\n";
}

// Says how far the reader has come, and that somebody is there.
std::string bookmark(std::uint64_t sequence) {
  auto const number = std::to_string(sequence);
  return "id: " + number + "\nevent: bookmark\ndata: {\"sequence\":" + number + "}\n\n";
}

}  // namespace

struct Events::Reader {
  Reader(Events& e, std::uint64_t s) : events(e), since(s) { ++events.streams_; }
  ~Reader() {
    --events.streams_;
    events.closed_one_.notify_all();
  }
  Reader(Reader const&) = delete;
  Reader& operator=(Reader const&) = delete;

  Events& events;
  std::uint64_t since;
  bool greeted = false;
};

Events::Events(asio::any_io_executor executor, Journal& journal, EventLimits limits)
    : journal_(journal), limits_(limits), closed_one_(std::move(executor)) {}

// Of a journal that kept more, or that lost one to a defect, what comes after the last gap.
void Events::restore(std::vector<api::Event> events) {
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

std::optional<Problem> Events::refuse(std::uint64_t since) const {
  auto const last = newest();
  if (since > last)
    return Problem(ProblemCode::bad_request, "since is " + std::to_string(since) + ", and the newest event is " +
                                                 std::to_string(last) + ": it is of another coordinator");
  if (since + 1 < oldest())
    return Problem(ProblemCode::compacted, "the events after " + std::to_string(since) +
                                               " are no longer all kept: the oldest is " + std::to_string(oldest()) +
                                               ", the newest " + std::to_string(last));
  return std::nullopt;
}

http::Checked<api::EventList> Events::page(std::uint64_t since, std::size_t limit) const {
  if (auto problem = refuse(since)) return std::move(*problem);
  api::EventList list;
  auto const last = newest();
  for (auto sequence = since + 1; sequence <= last && list.items.size() < limit; ++sequence)
    list.items.push_back(ring_[sequence - oldest()].event);
  if (!list.items.empty() && list.items.back().sequence < last)
    list.next_cursor = std::to_string(list.items.back().sequence);
  return list;
}

asio::awaitable<void> Events::settle() const { static_cast<void>(co_await journal_.flush()); }

http::Checked<http::Stream> Events::follow(std::optional<std::uint64_t> since) {
  auto const from = since.value_or(newest());
  if (auto problem = refuse(from)) return std::move(*problem);
  if (closing_ || streams_ == limits_.streams) {
    Problem problem(ProblemCode::unavailable, closing_ ? "the coordinator is stopping"
                                                       : std::to_string(streams_) + " streams of events are open");
    problem.retry_after_s = 5;
    return problem;
  }
  auto const reader = std::make_shared<Reader>(*this, from);
  journal_.hurry();
  return http::Stream([this, reader] { return next(reader); });
}

asio::awaitable<std::string> Events::next(std::shared_ptr<Reader> reader) {
  std::string piece;
  if (!std::exchange(reader->greeted, true)) co_return bookmark(reader->since);
  auto const until = Clock::now() + limits_.bookmark;
  while (newest() <= reader->since && !closing_ && Clock::now() < until) co_await journal_.changed().wait_until(until);
  // Overtaken by the ring: it ends here, and reads 410 when it comes again.
  if (reader->since + 1 < oldest()) {
    ++dropped_;
    co_return piece;
  }
  for (auto const last = newest(); reader->since < last && piece.size() < piece_bytes; ++reader->since)
    piece += sent_event(ring_[reader->since + 1 - oldest()].event);
  if (piece.empty() && !closing_) piece = bookmark(reader->since);
  co_return piece;
}

asio::awaitable<void> Events::close(Clock::time_point deadline) {
  closing_ = true;
  journal_.changed().notify_all();
  while (streams_ > 0 && Clock::now() < deadline) co_await closed_one_.wait_until(deadline);
}

}  // namespace chorus::coordinator
