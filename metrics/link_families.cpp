#include "metrics/link_families.hpp"

#include "metrics/catalogue.hpp"

namespace chorus::metrics {
namespace {

prometheus::MetricFamily family(Id id) {
  auto const& metric = describe(id);
  prometheus::MetricFamily family;
  family.name = metric.name;
  family.help = metric.help;
  family.type = metric.type == Type::counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  return family;
}

void add(prometheus::MetricFamily& family, std::vector<prometheus::ClientMetric::Label> labels, double value) {
  prometheus::ClientMetric metric;
  metric.label = std::move(labels);
  if (family.type == prometheus::MetricType::Counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
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
  }
  if (any_other) rows.push_back(std::move(other));
  return rows;
}

std::vector<prometheus::MetricFamily> LinkFamilies::collect(std::span<LinkTraffic const> links) {
  auto sent = family(Id::link_sent_bytes);
  auto received = family(Id::link_received_bytes);
  auto busy = family(Id::link_busy);
  auto connections = family(Id::link_connections);
  for (auto const& row : folded(links)) {
    add(sent, {{"peer", row.peer}}, static_cast<double>(row.sent_bytes));
    add(received, {{"peer", row.peer}}, static_cast<double>(row.received_bytes));
    add(busy, {{"peer", row.peer}, {"direction", "sent"}}, row.send_busy_seconds);
    add(busy, {{"peer", row.peer}, {"direction", "received"}}, row.receive_busy_seconds);
    add(connections, {{"peer", row.peer}, {"link", row.link}}, static_cast<double>(row.connections));
  }
  return {std::move(sent), std::move(received), std::move(busy), std::move(connections)};
}

}  // namespace chorus::metrics
