// Helpers of the model's tests.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/model/constants.hpp"
#include "collectives/model/follow_for_tests.hpp"
#include "collectives/topology/shape_spec.hpp"

namespace chorus::model {

// Returns constants of round numbers: a microsecond per message and a nanosecond per byte within a host, ten times that
// between hosts, and no shared resources.
inline Constants round_numbers() {
  Constants constants;
  for (auto& link : constants.level) link = {10e-6, 10e-9};
  constants.level[0] = {1e-6, 1e-9};
  constants.gamma_s_per_byte = 0.5e-9;
  constants.segment_bytes = std::uint64_t{1} << 40;  // one segment
  return constants;
}

inline std::vector<Locality> places(std::string const& topology) {
  return topology::parse_shape(topology).value().localities;
}

inline Constants defaults_for(std::string const& topology) {
  return overridden(Constants::defaults(), topology::parse_shape(topology).value());
}

inline plan::Spec spec_of(plan::Algorithm const& algorithm, plan::Spec spec) {
  spec.algorithm = algorithm.name;
  return spec;
}

inline std::vector<plan::Program> programs_of(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  std::vector<plan::Program> programs;
  for (plan::Rank rank = 0; rank < spec.ranks; ++rank)
    programs.push_back(plan::build(algorithm, spec_of(algorithm, spec), rank).value());
  return programs;
}

inline auto approximately(double value) { return doctest::Approx(value).epsilon(1e-9); }

}  // namespace chorus::model
