// Events of the coordinator in their order: GET /v1/events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

struct Event {
  std::uint64_t sequence = 0;  // from 1 without gaps, also across restarts of a coordinator with a journal
  std::string type;            // docs/reference/events.md lists them
  std::string at;              // RFC 3339, for people
  // The objects that the event concerns; the others are absent.
  std::optional<std::string> worker;
  std::optional<std::string> incarnation;
  std::optional<std::string> group;
  std::optional<std::uint32_t> epoch;
  std::optional<std::string> collective;
  std::optional<std::uint64_t> run;
  std::optional<std::string> code;    // code of the problem of a failed collective
  std::optional<std::string> detail;  // why, for people
};

// Data of the event `reset` on a stream: the reader has missed events, or the stream follows another log than before.
struct StreamReset {
  std::uint64_t sequence = 0;  // the stream continues after this event
  std::string detail;          // why, for people
};

struct EventList {
  std::vector<Event> items;
  std::optional<std::string> next_cursor;
  // Identity of the event log, 16 hexadecimal digits. "{log}-{sequence}" is a position, as in `since`.
  std::optional<std::string> log;
};

}  // namespace chorus::api
