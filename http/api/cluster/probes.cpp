#include "http/api/cluster/probes.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(ProbeRequest, (), (worker, url))
BOOST_DESCRIBE_STRUCT(ProbeReport, (), (url, round_trip_s, own_round_trip_s, bytes_per_s))
BOOST_DESCRIBE_STRUCT(MeasuredLink, (), (from, to, level, latency_s, bytes_per_s))
BOOST_DESCRIBE_STRUCT(MeasuredLinkList, (), (items, next_cursor))

constexpr auto required(ProbeRequest const*) { return std::array<std::string_view, 2>{"worker", "url"}; }
constexpr auto required(ProbeReport const*) { return std::array<std::string_view, 2>{"round_trip_s", "bytes_per_s"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::ProbeRequest)
CHORUS_HTTP_MESSAGE(chorus::api::ProbeReport)
CHORUS_HTTP_MESSAGE(chorus::api::MeasuredLinkList)
