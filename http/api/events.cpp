#include "http/api/events.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(EventList, (), (items, next_cursor))

constexpr auto required(EventList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::Event)
CHORUS_HTTP_MESSAGE(chorus::api::EventList)
