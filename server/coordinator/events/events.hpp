// The event log: a ring of the last events in order, which readers follow. Readers have no queues: a reader has a
// position in the ring, and is told if it falls behind the end.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "http/api/cluster/events.hpp"
#include "http/message/message.hpp"
#include "server/coordinator/events/event_position.hpp"
#include "server/coordinator/journal/journal.hpp"

namespace chorus::coordinator {

struct EventLimits {
  std::size_t kept = 10000;
  std::size_t streams = 256;
  std::chrono::milliseconds bookmark{15000};  // interval of bookmarks on a stream without events
};

// An event is shown when it is durable. After a restart no reader has seen an event that did not happen, and no number
// is given twice. Used on the journal's thread; the journal outlives this, and this outlives its streams.
class Events {
 public:
  // `log`: id of a new log, not 0; restore() may continue another log.
  Events(boost::asio::any_io_executor executor, Journal& journal, EventLimits limits, std::uint64_t log);

  // Restores the events of the previous process, in order, and the id of their log, which an old journal does not have.
  // Called before everything else.
  void restore(std::vector<api::Event> events, std::optional<std::uint64_t> log);

  // Adds an event; sets its sequence number and time.
  void publish(api::Event event);

  [[nodiscard]] std::uint64_t log() const { return log_; }

  // Number of the newest readable event; 0: none.
  [[nodiscard]] std::uint64_t newest() const;

  // Number of the oldest kept event, or of the next one if there is none.
  [[nodiscard]] std::uint64_t oldest() const { return next_ - ring_.size(); }
  // Returns when all events published before can be read, or cannot be made durable.
  boost::asio::awaitable<void> settle() const;

  // Returns up to `limit` events after `since`. Problems: compacted if some of them are no longer kept; bad_request for
  // a `since` that is not yet reached or belongs to another log.
  [[nodiscard]] http::Checked<api::EventList> page(EventPosition since, std::size_t limit) const;

  // Streams server-sent events after `since`, by default from now on: first the kept events, then new ones, while the
  // reader keeps up, until close(). Problems as in page(); unavailable above the limit of streams.
  [[nodiscard]] http::Checked<http::Stream> follow(std::optional<EventPosition> since);
  // Like follow(), for a reader whose connection ended after `last`. Where follow() would refuse, this stream begins
  // with an event `reset` and continues with the oldest kept event, because a refused EventSource never tries again.
  [[nodiscard]] http::Checked<http::Stream> resume(EventPosition last);

  // Ends all streams when they have read all events; returns when they have ended, or at the deadline. New streams are
  // refused.
  boost::asio::awaitable<void> close(std::chrono::steady_clock::time_point deadline);

  [[nodiscard]] std::size_t streams() const { return streams_; }
  // Counts since the start: events, and streams that were ended because they fell behind.
  [[nodiscard]] std::uint64_t published() const { return published_; }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }

 private:
  struct Entry {
    api::Event event;
    std::uint64_t written;  // number of its write in the journal
  };
  struct Reader;

  boost::asio::awaitable<std::string> next(std::shared_ptr<Reader> reader);
  [[nodiscard]] std::optional<http::Problem> refuse(EventPosition const& since) const;
  [[nodiscard]] http::Checked<http::Stream> stream(std::uint64_t since, std::string greeting);

  Journal& journal_;
  EventLimits const limits_;
  std::uint64_t log_;
  std::deque<Entry> ring_;  // numbered without gaps
  std::uint64_t next_ = 1;
  std::size_t streams_ = 0;
  std::uint64_t published_ = 0, dropped_ = 0;
  bool closing_ = false;
  http::Condition closed_one_;
};

}  // namespace chorus::coordinator
