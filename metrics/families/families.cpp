#include "metrics/families/families.hpp"

#include <limits>
#include <string>

#include "collectives/core/assert.hpp"

namespace chorus::metrics {
namespace {

prometheus::ClientMetric labelled(Id id, std::initializer_list<std::string_view> values) {
  auto const labels = describe(id).labels();
  CHORUS_ASSERT(values.size() == labels.size(), "one value per label");
  prometheus::ClientMetric metric;
  auto name = labels.begin();
  for (auto value : values) metric.label.push_back({std::string(*name++), std::string(value)});
  return metric;
}

}  // namespace

prometheus::MetricFamily make_family(Id id) {
  auto const& metric = describe(id);
  prometheus::MetricFamily family;
  family.name = metric.name;
  family.help = metric.help;
  family.type = metric.type == Type::counter ? prometheus::MetricType::Counter
                : metric.type == Type::gauge ? prometheus::MetricType::Gauge
                                             : prometheus::MetricType::Histogram;
  return family;
}

void add_value(prometheus::MetricFamily& family, Id id, std::initializer_list<std::string_view> labels, double value) {
  auto metric = labelled(id, labels);
  if (describe(id).type == Type::counter)
    metric.counter.value = value;
  else
    metric.gauge.value = value;
  family.metric.push_back(std::move(metric));
}

void add_histogram(prometheus::MetricFamily& family, Id id, std::initializer_list<std::string_view> labels,
                   std::span<std::uint64_t const> counts, double sum) {
  auto const upper = bounds(describe(id).buckets);
  CHORUS_ASSERT(counts.size() == upper.size() + 1, "as many buckets as the catalogue says");
  auto metric = labelled(id, labels);
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    cumulative += counts[i];
    metric.histogram.bucket.push_back(
        {cumulative, i < upper.size() ? upper[i] : std::numeric_limits<double>::infinity()});
  }
  metric.histogram.sample_count = cumulative;
  metric.histogram.sample_sum = sum;
  family.metric.push_back(std::move(metric));
}

prometheus::MetricFamily single(Id id, double value) {
  auto family = make_family(id);
  add_value(family, id, {}, value);
  return family;
}

}  // namespace chorus::metrics
