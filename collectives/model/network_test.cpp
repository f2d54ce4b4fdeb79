#include "collectives/model/network.hpp"

#include <doctest/doctest.h>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/model/model_for_tests.hpp"
#include "collectives/model/time/fold.hpp"
#include "collectives/model/time/simulate.hpp"

using namespace chorus;
using namespace chorus::model;

namespace {

Constants with_caches() {
  auto constants = round_numbers();
  constants.cache_bytes = 1000;
  constants.cached_gamma_s_per_byte = 0.125e-9;  // a quarter of the time for memory
  return constants;
}

double gamma_of(std::string const& topology, Constants const& constants, std::uint64_t vector_bytes) {
  auto const localities = places(topology);
  return Network(localities, constants).gamma_s_per_byte(vector_bytes);
}

}  // namespace

TEST_CASE("data in caches has a smaller gamma, and a long vector has the mean of its parts in caches and memory") {
  CHECK(gamma_of("hosts:1x2", with_caches(), 0) == 0.125e-9);
  CHECK(gamma_of("hosts:1x2", with_caches(), 1000) == 0.125e-9);
  CHECK(gamma_of("hosts:1x2", with_caches(), 3000) == approximately((0.125e-9 + 2 * 0.5e-9) / 3));
  CHECK(gamma_of("hosts:1x2", round_numbers(), 4) == 0.5e-9);  // no caches
}

TEST_CASE("ranks that take turns on a core have the gamma of memory") {
  auto constants = with_caches();
  constants.host_cores = 2;
  CHECK(gamma_of("hosts:1x2", constants, 1000) == 0.125e-9);
  CHECK(gamma_of("hosts:4x2", constants, 1000) == 0.125e-9);
  CHECK(gamma_of("hosts:1x3", constants, 1000) == 0.5e-9);
}

TEST_CASE("segments are longer if each would wake its receiver") {
  auto constants = round_numbers();
  constants.segment_bytes = 1000;
  constants.host_cores = 2;
  auto const segment_of = [&](std::string const& topology) {
    auto const localities = places(topology);
    return Network(localities, constants).segment_bytes();
  };
  CHECK(segment_of("hosts:1x3") == 1000);  // no rank is woken
  constants.wake_s = 1e-6;
  CHECK(segment_of("hosts:1x2") == 1000);
  CHECK(segment_of("hosts:4x2") == 1000);
  CHECK(segment_of("hosts:1x3") == 4000);
}

TEST_CASE("simulate() and fold() use the gamma of caches or memory by the size of the vector") {
  auto const localities = places("hosts:1x4");
  Network const network(localities, with_caches());
  auto const& algorithm = *algorithms::find("halving_doubling").value();
  auto const spec = spec_of(algorithm, {.op = Op::all_reduce, .ranks = 4, .in_place = true});
  for (std::uint64_t const bytes : {std::uint64_t{800}, std::uint64_t{8000}}) {
    auto as_slow_everywhere = round_numbers();
    as_slow_everywhere.gamma_s_per_byte = network.gamma_s_per_byte(bytes);
    Network const same(localities, as_slow_everywhere), slower(localities, round_numbers());
    auto const simulated = [&](Network const& on) { return simulate(algorithm, spec, on, bytes / 4, 4).cost.seconds; };
    auto const folded = [&](Network const& on) { return fold(algorithm, spec, on, bytes / 4, 4).seconds; };
    CHECK(simulated(network) == simulated(same));
    CHECK(simulated(network) < simulated(slower));
    CHECK(folded(network) == folded(same));
    CHECK(folded(network) < folded(slower));
  }
}
