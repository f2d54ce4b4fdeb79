// What happens at the coordinator, in order: GET /v1/events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace chorus::api {

struct Event {
  std::uint64_t sequence = 0;  // from 1; every event one more, also across restarts of a coordinator with a journal
  std::string type;            // docs/reference/events.md lists them
  std::string at;              // RFC 3339, for people
  // What it is about; those that apply.
  std::optional<std::string> worker;
  std::optional<std::string> incarnation;
  std::optional<std::string> group;
  std::optional<std::uint32_t> epoch;
  std::optional<std::string> collective;
  std::optional<std::uint64_t> run;
  std::optional<std::string> code;    // of the problem with which a collective failed
  std::optional<std::string> detail;  // why, for people
};

// The data of the event `reset` on a stream: the reader has missed events, or follows another log than before.
struct StreamReset {
  std::uint64_t sequence = 0;  // the events after this one follow
  std::string detail;          // why, for people
};

struct EventList {
  std::vector<Event> items;
  std::optional<std::string> next_cursor;
  std::optional<std::string> log;  // 16 hexadecimal digits; with a number behind a dash it is a position, as in `since`
};

}  // namespace chorus::api
