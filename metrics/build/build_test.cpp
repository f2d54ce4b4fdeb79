#include "metrics/build/build.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

using namespace chorus::metrics;

namespace {

// Returns a command's output without the newline; "" if the command cannot be run.
std::string printed(std::string const& command) {
  std::unique_ptr<FILE, int (*)(FILE*)> const pipe(popen((command + " 2>/dev/null").c_str(), "r"), &pclose);
  std::array<char, 256> line{};
  if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe.get()) == nullptr) return "";
  std::string text = line.data();
  std::erase(text, '\n');
  return text;
}

}  // namespace

TEST_CASE("a build knows every field that distinguishes it from another build") {
  for (auto const& [name, value] : fields_of(this_build())) {
    CAPTURE(name);
    CHECK_FALSE(value.empty());
    CHECK(value.find_first_of("\"\\\n") == std::string::npos);
  }
  CHECK(this_build().version.find('.') != std::string::npos);
  CHECK(this_build().tls.starts_with("OpenSSL "));
}

TEST_CASE("the commit is that of the sources that were built") {
  auto const head = printed("git -c safe.directory='*' -C " CHORUS_SOURCE_DIR " rev-parse --short=12 HEAD");
  auto const top = printed("git -c safe.directory='*' -C " CHORUS_SOURCE_DIR " rev-parse --show-toplevel");
  if (head.empty() || top != CHORUS_SOURCE_DIR) return;  // no repository: archive or packager name the commit
  CHECK(this_build().commit.starts_with(head));
}

TEST_CASE("--version is a line for people, and with --json an object") {
  Build const build{"1.2.3", "abc", "cc 1", "1.81", "80,90", "OpenSSL 3", "4"};
  std::array const plain{"chorus", "--version"};
  std::array const json{"chorus", "--json", "--version"};
  CHECK(version_text(build, "chorus", 2, plain.data()) ==
        "chorus 1.2.3 (commit abc, cc 1, Boost 1.81, CUDA 80,90, OpenSSL 3, plan generator 4)");
  CHECK(version_text(build, "chorus", 3, json.data()) ==
        R"({"program":"chorus","version":"1.2.3","commit":"abc","compiler":"cc 1","boost":"1.81",)"
        R"("cuda":"80,90","tls":"OpenSSL 3","plan_generator":"4"})");
}
