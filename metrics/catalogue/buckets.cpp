#include <algorithm>

#include "metrics/catalogue/catalogue.hpp"

namespace chorus::metrics {
namespace {

std::vector<double> geometric(double first, double factor, int count) {
  std::vector<double> bounds;
  for (double bound = first; count > 0; --count, bound *= factor) bounds.push_back(bound);
  return bounds;
}

}  // namespace

std::vector<double> bounds(Buckets buckets) {
  switch (buckets) {
    case Buckets::none:
      return {};
    case Buckets::duration_seconds:
      return geometric(1e-4, 2, 21);
    case Buckets::step_seconds:
      return geometric(1e-6, 4, 13);
    case Buckets::http_seconds:
      return {0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10};
    case Buckets::lag_seconds:
      return geometric(1e-4, 4, 9);
    case Buckets::round_trip_seconds:
      return geometric(1e-5, 2, 16);
    case Buckets::ratio:
      return {0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};
    case Buckets::payload_bytes:
      return geometric(1024, 4, 12);
    case Buckets::bandwidth_bytes_per_second:
      return geometric(1e7, 2, 16);
    case Buckets::clocks:
      return {0, 1, 2, 4, 8, 16, 32, 64};
  }
  return {};
}

std::string_view size_class(std::uint64_t bytes) {
  auto const found = std::ranges::find_if(size_classes, [bytes](auto const& one) { return bytes <= one.first; });
  return found == size_classes.end() ? greatest_size_class : found->second;
}

}  // namespace chorus::metrics
