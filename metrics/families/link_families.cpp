#include "metrics/families/link_families.hpp"

namespace chorus::metrics {
namespace {

// Round trips of all peers together.
prometheus::MetricFamily round_trips(std::span<LinkTraffic const> links) {
  LinkTraffic all;
  for (auto const& link : links) {
    for (std::size_t i = 0; i < all.round_trips.size(); ++i) all.round_trips[i] += link.round_trips[i];
    all.round_trip_seconds += link.round_trip_seconds;
  }
  auto family = make_family(Id::link_round_trip);
  add_histogram(family, Id::link_round_trip, {}, all.round_trips, all.round_trip_seconds);
  return family;
}

}  // namespace

std::vector<LinkTraffic> LinkFamilies::folded(std::span<LinkTraffic const> links) {
  std::vector<LinkTraffic> rows;
  LinkTraffic other;
  other.peer = other.link = "other";
  bool any_other = false;
  for (auto const& link : links) {
    bool const has_series = named_.contains(link.peer) || named_.size() < max_peers_;
    if (has_series && link.peer != other.peer) {
      named_.insert(link.peer);
      rows.push_back(link);
      continue;
    }
    any_other = true;
    other.sent_bytes += link.sent_bytes;
    other.received_bytes += link.received_bytes;
    other.send_busy_seconds += link.send_busy_seconds;
    other.receive_busy_seconds += link.receive_busy_seconds;
    other.connections += link.connections;
    other.retries += link.retries;
    other.errors.unreachable += link.errors.unreachable;
    other.errors.closed += link.errors.closed;
    other.errors.refused += link.errors.refused;
    other.errors.malformed += link.errors.malformed;
    other.errors.corrupt += link.errors.corrupt;
  }
  if (any_other) rows.push_back(std::move(other));
  return rows;
}

Families LinkFamilies::collect(std::span<LinkTraffic const> links) {
  auto sent = make_family(Id::link_sent_bytes);
  auto received = make_family(Id::link_received_bytes);
  auto busy = make_family(Id::link_busy);
  auto connections = make_family(Id::link_connections);
  auto retries = make_family(Id::link_retries);
  auto errors = make_family(Id::link_errors);
  auto last_round_trips = make_family(Id::link_round_trip_last);
  for (auto const& row : folded(links)) {
    add_value(sent, Id::link_sent_bytes, {row.peer}, static_cast<double>(row.sent_bytes));
    add_value(received, Id::link_received_bytes, {row.peer}, static_cast<double>(row.received_bytes));
    add_value(busy, Id::link_busy, {row.peer, "sent"}, row.send_busy_seconds);
    add_value(busy, Id::link_busy, {row.peer, "received"}, row.receive_busy_seconds);
    add_value(connections, Id::link_connections, {row.peer, row.link}, static_cast<double>(row.connections));
    add_value(retries, Id::link_retries, {row.peer}, static_cast<double>(row.retries));
    auto const add_error = [&](std::string_view kind, std::uint64_t count) {
      add_value(errors, Id::link_errors, {row.peer, kind}, static_cast<double>(count));
    };
    add_error("unreachable", row.errors.unreachable);
    add_error("closed", row.errors.closed);
    add_error("refused", row.errors.refused);
    add_error("malformed", row.errors.malformed);
    add_error("corrupt", row.errors.corrupt);
    if (row.last_round_trip_seconds > 0)
      add_value(last_round_trips, Id::link_round_trip_last, {row.peer}, row.last_round_trip_seconds);
  }
  Families families;
  for (auto* family : {&sent, &received, &busy, &connections, &retries, &errors, &last_round_trips})
    families.push_back(std::move(*family));
  families.push_back(round_trips(links));
  return families;
}

}  // namespace chorus::metrics
