#include "collectives/topology/link.hpp"

#include <array>
#include <charconv>
#include <string>

#include "collectives/core/errc.hpp"

namespace chorus::topology {
namespace {

std::string to_text(double value) {
  std::array<char, 32> text;  // the shortest form of any double has at most 24 characters
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

Error outside(std::string_view where, std::string_view what, double value, double low, double high,
              std::string_view unit) {
  return Error(PlanErrc::bad_parameter, std::string(where) + ": " + std::string(what) + " " + to_text(value) + " " +
                                            std::string(unit) + "; expected " + to_text(low) + " to " + to_text(high) +
                                            " " + std::string(unit));
}

}  // namespace

Status check(Link const& link, std::string_view where) {
  auto const bandwidth = link.bandwidth_gbyte_per_s;
  if (!(bandwidth >= min_bandwidth_gbyte_per_s && bandwidth <= max_bandwidth_gbyte_per_s))
    return outside(where, "bandwidth", bandwidth, min_bandwidth_gbyte_per_s, max_bandwidth_gbyte_per_s, "GB/s");
  if (!(link.latency_s >= 0 && link.latency_s <= max_latency_s))
    return outside(where, "latency", link.latency_s, 0, max_latency_s, "s");
  return ok();
}

}  // namespace chorus::topology
