#include "http/api/cluster/links.hpp"

#include "http/json/codec.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(PeerLink, (),
                      (worker, link, connections, why_not_shm, why_not_ipc, sent_bytes, received_bytes,
                       send_busy_seconds))
BOOST_DESCRIBE_STRUCT(PeerLinkList, (), (items, next_cursor))
BOOST_DESCRIBE_STRUCT(LinkTraffic, (), (from, to, link, connections, why_not_shm, sent_bytes, send_busy_seconds))
BOOST_DESCRIBE_STRUCT(LinkTrafficList, (), (at_s, items, silent))

constexpr auto required(PeerLink const*) { return std::array<std::string_view, 2>{"worker", "link"}; }
constexpr auto required(PeerLinkList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::PeerLink)
CHORUS_HTTP_MESSAGE(chorus::api::PeerLinkList)
CHORUS_HTTP_MESSAGE(chorus::api::LinkTrafficList)
