#include "worker/service/surroundings.hpp"

#include <unistd.h>

#include <array>
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

std::uint64_t default_memory_limit() {
  auto const pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || page_bytes <= 0) return WorkerOptions().memory_limit_bytes;
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes) / 4 * 3;
}

}  // namespace chorus::service
