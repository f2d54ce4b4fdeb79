#include "metrics/catalogue/catalogue.hpp"

namespace chorus::metrics {
namespace {

std::string services(Metric const& metric) {
  if (metric.on_worker && metric.on_coordinator) return "both";
  return metric.on_worker ? "worker" : "coordinator";
}

}  // namespace

std::string_view name(Type type) {
  switch (type) {
    case Type::counter:
      return "counter";
    case Type::gauge:
      return "gauge";
    case Type::histogram:
      return "histogram";
  }
  return "";
}

std::string to_markdown() {
  std::string page;
  for (auto const& metric : catalogue()) {
    std::string labels;
    for (auto label : metric.labels()) {
      if (!labels.empty()) labels += ", ";
      labels += '`' + std::string(label) + '`';
    }
    page += "| `" + std::string(metric.name) + "` | " + std::string(name(metric.type)) + " | " + labels + " | " +
            services(metric) + " | " + std::string(metric.help) + " |\n";
  }
  return page;
}

}  // namespace chorus::metrics
