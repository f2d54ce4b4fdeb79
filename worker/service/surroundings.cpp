#include "worker/service/surroundings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <random>

#include "worker/service/options.hpp"

namespace chorus::service {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

std::uint64_t draw_incarnation() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// Version 2 says "max" where there is no limit, version 1 a number that no machine has.
std::optional<std::uint64_t> control_group_limit(std::filesystem::path const& root) {
  for (auto const* place : {"memory.max", "memory/memory.limit_in_bytes"}) {
    std::ifstream file(root / place);
    std::string text;
    if (!std::getline(file, text)) continue;
    std::uint64_t bytes = 0;
    auto const [end, failure] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (failure == std::errc() && end == text.data() + text.size() && bytes < std::uint64_t{1} << 60) return bytes;
    return std::nullopt;
  }
  return std::nullopt;
}

std::uint64_t default_memory_limit() {
  auto const pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return WorkerOptions().memory_limit_bytes;
  auto const memory = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  return std::min(memory, control_group_limit("/sys/fs/cgroup").value_or(memory)) / 4 * 3;
}

}  // namespace chorus::service
