#include "http/api/cluster/status.hpp"

#include "http/json/codec.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(VerdictReason, (), (level, text, worker, group, collective, parameter))
BOOST_DESCRIBE_STRUCT(Verdict, (), (level, text, reasons))
BOOST_DESCRIBE_STRUCT(Setting, (), (name, value, default_value, is_default, help))
BOOST_DESCRIBE_STRUCT(StoreStatus, (), (kind, place, cluster, bytes, last_write_s, failure))
BOOST_DESCRIBE_STRUCT(LeadStatus, (), (url, since, store))
BOOST_DESCRIBE_STRUCT(CoordinatorStatus, (),
                      (verdict, version, started_at, uptime_s, last_event, lease_ms, workers, ready, groups, degraded,
                       running, draining, journal, traces, settings, coordinator))
BOOST_DESCRIBE_STRUCT(DemoRequest, (), (group, elements))

constexpr auto required(VerdictReason const*) { return std::array<std::string_view, 2>{"level", "text"}; }
constexpr auto required(Verdict const*) { return std::array<std::string_view, 2>{"level", "text"}; }
constexpr auto required(StoreStatus const*) { return std::array<std::string_view, 1>{"kind"}; }
constexpr auto required(LeadStatus const*) { return std::array<std::string_view, 1>{"store"}; }
constexpr auto required(CoordinatorStatus const*) { return std::array<std::string_view, 1>{"verdict"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::CoordinatorStatus)
CHORUS_HTTP_MESSAGE(chorus::api::DemoRequest)
