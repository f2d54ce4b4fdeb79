// Writes metric families as the text of GET /metrics. Private to metrics/, except for the content type.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace prometheus {
struct MetricFamily;
}

namespace chorus::metrics {

inline constexpr std::string_view content_type = "text/plain; version=0.0.4; charset=utf-8";

// Families without a series are left out; the others are sorted by name.
[[nodiscard]] std::string exposition(std::vector<prometheus::MetricFamily> families);

}  // namespace chorus::metrics
