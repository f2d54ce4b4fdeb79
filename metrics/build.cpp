#include "metrics/build.hpp"

#include <boost/version.hpp>

namespace chorus::metrics {

Build this_build() {
  Build build;
  build.version = CHORUS_VERSION;
#ifdef __clang__
  build.compiler = "clang " __clang_version__;
#else
  build.compiler = "gcc " __VERSION__;
#endif
  build.boost = std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000);
  return build;
}

}  // namespace chorus::metrics
