// Runs a fuzz target over the files of a directory, in builds without libFuzzer: replay CORPUS_DIRECTORY.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/input.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: fuzz_NAME CORPUS_DIRECTORY\n", stderr), 2;
  std::size_t inputs = 0;
  for (auto const& entry : std::filesystem::directory_iterator(argv[1])) {
    std::ifstream file(entry.path(), std::ios::binary);
    std::vector<char> const content{std::istreambuf_iterator<char>(file), {}};
    // So that the log ends with the name of the input that ends the process.
    std::printf("%s\n", entry.path().filename().c_str());
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<std::uint8_t const*>(content.data()), content.size());
    ++inputs;
  }
  std::printf("%zu inputs\n", inputs);
  return inputs == 0 ? 1 : 0;
}
