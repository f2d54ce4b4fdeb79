// What has happened, in order, for those who follow it: a ring of the last events. Nobody has a queue of its own: a
// reader has a place in the ring, and one that falls behind its end is told so.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "http/api/events.hpp"
#include "http/message.hpp"
#include "server/coordinator/journal.hpp"

namespace chorus::coordinator {

struct EventLimits {
  std::size_t kept = 10000;
  std::size_t streams = 256;
  std::chrono::milliseconds bookmark{15000};  // between signs of life to a stream on which nothing happens
};

// An event is shown when it is durable: after a restart nobody has seen what did not happen, and no number is given
// twice. On the journal's thread; the journal outlives this, and this outlives its streams.
class Events {
 public:
  Events(boost::asio::any_io_executor executor, Journal& journal, EventLimits limits);

  // The events of the last life, in order. Before everything else.
  void restore(std::vector<api::Event> events);

  // Draws the sequence number, and fills in the time.
  void publish(api::Event event);

  // The newest event that can be read, 0: none.
  [[nodiscard]] std::uint64_t newest() const;

  // The oldest that is kept, or the next one if there is none.
  [[nodiscard]] std::uint64_t oldest() const { return next_ - ring_.size(); }
  // Returns when what was published before can be read, or cannot be made durable.
  boost::asio::awaitable<void> settle() const;

  // Up to `limit` events after `since`. Problems: compacted if some of them are no longer kept, bad_request for a
  // `since` that has not been reached.
  [[nodiscard]] http::Checked<api::EventList> page(std::uint64_t since, std::size_t limit) const;

  // Server-sent events after `since`, by default from now on: what is there, then what comes, as long as the reader
  // keeps up, until close(). Problems as page(); unavailable above the limit of streams.
  [[nodiscard]] http::Checked<http::Stream> follow(std::optional<std::uint64_t> since);

  // Ends all streams when they have read what there is; returns when that is so, or at the deadline. New ones are
  // refused.
  boost::asio::awaitable<void> close(std::chrono::steady_clock::time_point deadline);

  [[nodiscard]] std::size_t streams() const { return streams_; }
  // Since the start: events, and streams that were ended because they fell behind.
  [[nodiscard]] std::uint64_t published() const { return published_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  struct Entry {
    api::Event event;
    std::uint64_t written;  // its number in the journal
  };
  struct Reader;

  boost::asio::awaitable<std::string> next(std::shared_ptr<Reader> reader);
  [[nodiscard]] std::optional<http::Problem> refuse(std::uint64_t since) const;

  Journal& journal_;
  EventLimits const limits_;
  std::deque<Entry> ring_;  // their numbers have no gaps
  std::uint64_t next_ = 1;
  std::size_t streams_ = 0;
  std::uint64_t published_ = 0, dropped_ = 0;
  bool closing_ = false;
  http::Condition closed_one_;
};

}  // namespace chorus::coordinator
