#include "tests/support/faults/surroundings.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <utility>

namespace chorus::testing {

namespace fs = std::filesystem;

namespace {

bool write_number(fs::path const& file, std::uint64_t number) {
  std::ofstream stream(file);
  stream << number << '\n';
  return static_cast<bool>(stream.flush());
}

// Directories in which this process may make groups. In version 1, below its own group: groups with processes may have
// subgroups. In version 2, at the root: they may not.
std::vector<fs::path> places() {
  std::vector<fs::path> places;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);)
    if (auto const at = line.find(":memory:"); at != std::string::npos)
      places.emplace_back("/sys/fs/cgroup/memory" + line.substr(at + 8));
  places.emplace_back("/sys/fs/cgroup");
  return places;
}

}  // namespace

bool take_own_shared_memory(std::uint64_t size_bytes) {
  if (::unshare(CLONE_NEWNS) != 0) return false;
  // Mounts made from now on are not visible outside.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("tmpfs", "/dev/shm", "tmpfs", 0, ("size=" + std::to_string(size_bytes)).c_str()) == 0;
}

bool take_own_network(bool with_ipv4) {
  if (::unshare(CLONE_NEWNET) != 0) return false;
  auto const ip = [](char const* command) { return std::system(command) == 0; };
  return ip("ip link set lo up") && ip("ip -6 address add 2001:2::1/64 dev lo nodad") &&
         ip(with_ipv4 ? "ip address add 10.0.0.1/32 dev lo" : "ip address delete 127.0.0.1/8 dev lo");
}

std::optional<ControlGroup> ControlGroup::make(std::uint64_t limit_bytes) {
  for (auto const& place : places()) {
    auto const outer = place / ("chorus-test-" + std::to_string(::getpid()));
    std::error_code failure;
    if (!fs::create_directory(outer, failure)) continue;
    ControlGroup group(outer);
    bool const is_limited = write_number(outer / "memory.limit_in_bytes", limit_bytes) ||
                            (fs::exists(outer / "memory.max") && write_number(outer / "memory.max", limit_bytes));
    if (is_limited && fs::create_directory(group.inner(), failure)) return group;
  }
  return std::nullopt;
}

ControlGroup::ControlGroup(ControlGroup&& other) noexcept : outer_(std::exchange(other.outer_, {})) {}

ControlGroup::~ControlGroup() {
  if (outer_.empty()) return;
  ::rmdir(inner().c_str());
  ::rmdir(outer_.c_str());
}

std::vector<std::string> ControlGroup::inside(std::vector<std::string> arguments) const {
  std::vector<std::string> all{"/bin/sh", "-c", "echo $$ > \"$0\" && exec \"$@\"", inner() / "cgroup.procs"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

}  // namespace chorus::testing
