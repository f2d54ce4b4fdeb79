#include "metrics/build/build.hpp"

#include <algorithm>
#include <boost/version.hpp>
#include <span>

#include "collectives/plan/spec.hpp"

namespace chorus::metrics {

// Defined in a file that cmake/ChorusCommit.cmake writes at each build.
extern char const* const commit_of_sources;

Build this_build() {
  Build build;
  build.version = CHORUS_VERSION;
  build.commit = commit_of_sources;
#ifdef __clang__
  build.compiler = "clang " __clang_version__;
#else
  build.compiler = "gcc " __VERSION__;
#endif
  build.boost = std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000);
  build.cuda = CHORUS_CUDA_BUILT_FOR;
  build.tls = CHORUS_TLS;
  build.plan_generator = std::to_string(plan::generator_version);
  return build;
}

std::vector<std::pair<std::string_view, std::string>> fields_of(Build const& build) {
  return {{"version", build.version},
          {"commit", build.commit},
          {"compiler", build.compiler},
          {"boost", build.boost},
          {"cuda", build.cuda},
          {"tls", build.tls},
          {"plan_generator", build.plan_generator}};
}

std::string version_text(Build const& build, std::string_view program, int argc, char const* const* argv) {
  std::span const arguments(argv, static_cast<std::size_t>(argc));
  if (std::ranges::none_of(arguments, [](std::string_view argument) { return argument == "--json"; }))
    return std::string(program) + " " + build.version + " (commit " + build.commit + ", " + build.compiler +
           ", Boost " + build.boost + ", CUDA " + build.cuda + ", " + build.tls + ", plan generator " +
           build.plan_generator + ")";
  // No field has a character that JSON would escape.
  auto text = "{\"program\":\"" + std::string(program) + '"';
  for (auto const& [name, value] : fields_of(build)) text += ",\"" + std::string(name) + "\":\"" + value + '"';
  return text + '}';
}

}  // namespace chorus::metrics
