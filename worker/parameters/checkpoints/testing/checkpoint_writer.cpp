// checkpoint_writer DIRECTORY: writes one checkpoint after the other, keeps two, and prints the number of each
// committed one, until it is killed.
#include <cstdio>

#include "worker/parameters/checkpoints/testing/content.hpp"

using namespace chorus;

namespace {

int fail(Error const& error) {
  std::fprintf(stderr, "checkpoint_writer: %s\n", error.detail.c_str());
  return 1;
}

int run(std::string const& directory) {
  auto const files = checkpoints::posix_files();
  for (;;) {
    auto const number = checkpoints::next_number(*files, directory);
    if (number.has_error()) return fail(number.error());
    auto const written = checkpoints::testing::Content(*number).write(*files, directory, *number, *number % 4 + 1);
    if (written.has_error()) return fail(written.error());
    std::printf("%llu\n", static_cast<unsigned long long>(*number));
    std::fflush(stdout);
    if (auto const removed = checkpoints::remove_old(*files, directory, 2); removed.has_error())
      return fail(removed.error());
  }
}

}  // namespace

int main(int argc, char** argv) { return argc == 2 ? run(argv[1]) : 2; }
