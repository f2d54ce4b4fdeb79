#include "http/api/cluster/events.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(StreamReset, (), (sequence, detail))
BOOST_DESCRIBE_STRUCT(EventList, (), (items, next_cursor, log))

constexpr auto required(StreamReset const*) { return std::array<std::string_view, 2>{"sequence", "detail"}; }
constexpr auto required(EventList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::Event)
CHORUS_HTTP_MESSAGE(chorus::api::StreamReset)
CHORUS_HTTP_MESSAGE(chorus::api::EventList)
