// Surroundings for the processes that a test starts: a separate /dev/shm, a separate network, a control group with a
// limit. All need rights that not every machine grants.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace chorus::testing {

// Gives this process, and those that it starts from now on, a separate, empty /dev/shm of this size. False: not
// permitted, and nothing has changed.
[[nodiscard]] bool take_own_shared_memory(std::uint64_t size_bytes);

// Gives this process, and those that it starts from now on, a separate network. Its loopback device has 2001:2::1
// beside ::1 and, if `with_ipv4`, 10.0.0.1 beside 127.0.0.1; otherwise there is no IPv4 address. False: not permitted,
// and nothing has changed.
[[nodiscard]] bool take_own_network(bool with_ipv4);

// Two nested control groups, of which the outer one has a memory limit. Removed with the object, after the processes in
// them have ended.
class ControlGroup {
 public:
  // Returns nothing if this machine does not permit control groups.
  [[nodiscard]] static std::optional<ControlGroup> make(std::uint64_t limit_bytes);
  ~ControlGroup();
  ControlGroup(ControlGroup&& other) noexcept;
  ControlGroup& operator=(ControlGroup&&) = delete;

  // Returns the command line that runs these arguments within the inner group.
  [[nodiscard]] std::vector<std::string> inside(std::vector<std::string> arguments) const;

 private:
  explicit ControlGroup(std::filesystem::path outer) : outer_(std::move(outer)) {}
  [[nodiscard]] std::filesystem::path inner() const { return outer_ / "in"; }
  std::filesystem::path outer_;  // empty: moved from
};

}  // namespace chorus::testing
