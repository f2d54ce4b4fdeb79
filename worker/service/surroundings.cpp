#include "worker/service/surroundings.hpp"

#include <unistd.h>

#include <array>
#include <random>

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

std::uint64_t default_memory_limit(std::uint64_t memory_bytes) { return memory_bytes / 4 * 3; }

}  // namespace chorus::service
