// Wraps prometheus-cpp families for the metrics classes. Private to metrics/: services include only
// worker_metrics.hpp and coordinator_metrics.hpp.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/assert.hpp"
#include "metrics/catalogue/catalogue.hpp"

namespace chorus::metrics {

template <class Value>
prometheus::Family<Value>& register_family(prometheus::Registry& registry, Metric const& metric);

// One metric of the catalogue and its series, each resolved once. Bounded: when `limit` series exist, new combinations
// of label values are counted as "other". Thread-safe. The registry outlives the Series.
template <class Value>
class Series {
 public:
  static constexpr std::size_t default_limit = 512;

  Series(prometheus::Registry& registry, Id id, std::size_t limit = default_limit)
      : metric_(describe(id)), family_(register_family<Value>(registry, metric_)), limit_(limit) {}

  // Returns the series of these label values, which are in the order of the catalogue's labels.
  Value& with(std::initializer_list<std::string_view> values) {
    CHORUS_ASSERT(values.size() == metric_.labels().size(), "one value per label");
    std::string key;
    for (auto value : values) key.append(value).push_back('\0');
    std::scoped_lock lock(mutex_);
    if (auto found = resolved_.find(key); found != resolved_.end()) return *found->second;
    if (resolved_.size() < limit_) return add(key, {values.begin(), values.end()});
    if (overflow_ == nullptr) overflow_ = &add("", std::vector<std::string_view>(values.size(), "other"));
    return *overflow_;
  }

 private:
  Value& add(std::string const& key, std::vector<std::string_view> const& values) {
    prometheus::Labels labels;
    for (std::size_t i = 0; i < values.size(); ++i)
      labels.emplace(std::string(metric_.labels()[i]), std::string(values[i]));
    auto& value = make(labels);
    resolved_.emplace(key, &value);
    return value;
  }

  Value& make(prometheus::Labels const& labels) {
    if constexpr (std::is_same_v<Value, prometheus::Histogram>)
      return family_.Add(labels, bounds(metric_.buckets));
    else
      return family_.Add(labels);
  }

  Metric const& metric_;
  prometheus::Family<Value>& family_;
  std::size_t const limit_;
  std::mutex mutex_;
  std::map<std::string, Value*> resolved_;
  Value* overflow_ = nullptr;
};

template <class Value>
prometheus::Family<Value>& register_family(prometheus::Registry& registry, Metric const& metric) {
  auto const name = std::string(metric.name);
  auto const help = std::string(metric.help);
  if constexpr (std::is_same_v<Value, prometheus::Counter>) {
    CHORUS_ASSERT(metric.type == Type::counter, "the catalogue says otherwise");
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  } else if constexpr (std::is_same_v<Value, prometheus::Gauge>) {
    CHORUS_ASSERT(metric.type == Type::gauge, "the catalogue says otherwise");
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  } else {
    CHORUS_ASSERT(metric.type == Type::histogram, "the catalogue says otherwise");
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  }
}

}  // namespace chorus::metrics
