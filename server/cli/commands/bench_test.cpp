// `chorus bench` becomes `chorus-bench`, wherever that is installed.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "server/cli/testing/test_support.hpp"

using namespace chorus::cli;
namespace fs = std::filesystem;

namespace {

// A directory with a copy of the built `chorus`, away from its siblings.
class Installation {
 public:
  Installation() {
    auto pattern = (fs::temp_directory_path() / "chorus-bench-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    fs::create_directory(directory_ / "bin");
    fs::create_directory(directory_ / "path");
    fs::copy_file(CHORUS_BINARY, directory_ / "bin" / "chorus");
  }
  ~Installation() { fs::remove_all(directory_); }
  Installation(Installation const&) = delete;
  Installation& operator=(Installation const&) = delete;

  // Installs a program that prints its arguments and returns its own exit code.
  void install_bench(std::string const& where) {
    auto const path = directory_ / where / "chorus-bench";
    std::ofstream(path) << "#!/bin/sh\necho " << where << ": \"$@\"\nexit 7\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  Run bench(std::vector<std::string> arguments) {
    return run_program((directory_ / "bin" / "chorus").string(), arguments,
                       {"PATH=" + (directory_ / "path").string() + ":/usr/bin:/bin"});
  }

 private:
  fs::path directory_;
};

}  // namespace

TEST_CASE("bench passes all its arguments to the program beside it, and returns its exit code") {
  Installation installation;
  installation.install_bench("path");
  installation.install_bench("bin");
  auto const run = installation.bench({"bench", "--op", "all_reduce", "--bytes", "4,1K", "--json", "--help"});
  CHECK(run.out == "bin: --op all_reduce --bytes 4,1K --json --help\n");
  CHECK(run.status == 7);
  CHECK(installation.bench({"--json", "bench", "status"}).out == "bin: --json status\n");
}

TEST_CASE("bench is also found in PATH") {
  Installation installation;
  installation.install_bench("path");
  CHECK(installation.bench({"bench", "--ranks", "2"}).out == "path: --ranks 2\n");
}

TEST_CASE("without chorus-bench the message says where it must be") {
  Installation installation;
  auto const run = installation.bench({"bench"});
  CHECK(run.status == 1);
  CHECK(run.err.find("chorus-bench is neither beside this program nor in PATH") != std::string::npos);
  CHECK(boost::json::parse(installation.bench({"--json", "bench"}).out).at("code") == "unsupported");
}
