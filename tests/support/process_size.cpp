#include "tests/support/process_size.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

namespace chorus::testing {

ProcessSize size_of(Process const& process) {
  auto const directory = "/proc/" + std::to_string(process.pid()) + "/";
  std::ifstream status(directory + "status");
  ProcessSize size;
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> size.resident_kib;
    if (word == "VmHWM:") status >> size.peak_kib;
    if (word == "Threads:") status >> size.threads;
  }
  if (size.resident_kib == 0) throw std::runtime_error("the process does not tell its memory");
  auto const open = std::filesystem::directory_iterator(directory + "fd");
  size.descriptors = static_cast<std::size_t>(std::distance(begin(open), end(open)));
  return size;
}

}  // namespace chorus::testing
