#include "metrics/families/exposition.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <sstream>

namespace chorus::metrics {

std::string exposition(std::vector<prometheus::MetricFamily> families) {
  std::erase_if(families, [](auto const& family) { return family.metric.empty(); });
  std::sort(families.begin(), families.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

}  // namespace chorus::metrics
