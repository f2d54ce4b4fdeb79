// Helpers that make metric families at a scrape, from numbers that are kept elsewhere. Private to metrics/.
#pragma once

#include <prometheus/metric_family.h>

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "metrics/catalogue/catalogue.hpp"

namespace chorus::metrics {

using Families = std::vector<prometheus::MetricFamily>;

[[nodiscard]] prometheus::MetricFamily make_family(Id id);

// Adds a counter's or gauge's value; label values in the order of the catalogue's labels.
void add_value(prometheus::MetricFamily& family, Id id, std::initializer_list<std::string_view> labels, double value);

// Adds a histogram; `counts` are those of the buckets in order, the last one beyond all bounds.
void add_histogram(prometheus::MetricFamily& family, Id id, std::initializer_list<std::string_view> labels,
                   std::span<std::uint64_t const> counts, double sum);

// Makes a family of one series without labels.
[[nodiscard]] prometheus::MetricFamily single(Id id, double value);

}  // namespace chorus::metrics
