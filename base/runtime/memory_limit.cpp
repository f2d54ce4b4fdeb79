#include "base/runtime/memory_limit.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>
#include <string_view>
#include <vector>

namespace chorus::http {
namespace {

namespace fs = std::filesystem;

// Version 1 expresses "no limit" as a number above this.
constexpr std::uint64_t no_limit = std::uint64_t{1} << 60;

enum class Hierarchy { version_1, version_2 };

// A mounted hierarchy of control groups, as /proc/self/mountinfo shows it.
struct Mount {
  Hierarchy kind;
  std::string root;   // the group that is mounted at `place`
  std::string place;  // without the first slash
};

std::vector<std::string> split(std::string const& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(std::move(part));
  return parts;
}

bool names_memory(std::string const& controllers) {
  auto const names = split(controllers, ',');
  return std::ranges::find(names, "memory") != names.end();
}

// Replaces the octal escapes of mountinfo: "\040" is a space.
std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    auto const digits = text.substr(i + 1, 3);
    if (text[i] == '\\' && digits.size() == 3 &&
        std::from_chars(digits.data(), digits.data() + 3, code, 8).ptr == digits.data() + 3 && code < 128) {
      plain += static_cast<char>(code);
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// Reads lines such as "31 30 0:28 /group /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate".
std::vector<Mount> mounts(fs::path const& root) {
  std::vector<Mount> found;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    auto const fields = split(line, ' ');
    auto const dash = std::ranges::find(fields, "-");
    if (fields.size() < 6 || fields.end() - dash < 4) continue;
    auto const& type = dash[1];
    bool const is_two = type == "cgroup2";
    if (!is_two && (type != "cgroup" || !names_memory(dash[3]))) continue;
    found.push_back(
        {is_two ? Hierarchy::version_2 : Hierarchy::version_1, unescaped(fields[3]), unescaped(fields[4]).substr(1)});
  }
  return found;
}

// Returns the process's own group in a hierarchy: "0::/group" in version 2, "4:memory:/group" in version 1.
std::optional<std::string> own_group(fs::path const& root, Hierarchy kind) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    auto const colon = line.find(':'), second = line.find(':', colon + 1);
    if (colon == std::string::npos || second == std::string::npos) continue;
    auto const controllers = line.substr(colon + 1, second - colon - 1);
    bool const is_it = kind == Hierarchy::version_2 ? controllers.empty() : names_memory(controllers);
    if (is_it) return line.substr(second + 1);
  }
  return std::nullopt;
}

// Returns the group's path relative to the mount point. The path is empty if the group is not below it, as in a
// container that sees its own group only.
fs::path below(Mount const& mount, std::string const& group) {
  auto const is_outside = [](fs::path const& path) { return !path.empty() && *path.begin() == ".."; };
  auto relative = fs::path(group).lexically_relative(mount.root);
  return relative == "." || is_outside(relative) ? fs::path() : relative;
}

std::optional<std::uint64_t> read_limit(fs::path const& path, std::string const& key = "") {
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    if (!text.starts_with(key)) continue;
    std::uint64_t bytes = 0;
    auto const* const begin = text.data() + key.size();
    auto const [end, failure] = std::from_chars(begin, text.data() + text.size(), bytes);
    if (failure == std::errc() && end == text.data() + text.size() && bytes < no_limit) return bytes;
    return std::nullopt;
  }
  return std::nullopt;
}

// Reads the number behind `key`, of a line such as "MemAvailable:   20480 kB".
std::optional<std::uint64_t> read_entry(fs::path const& path, std::string const& key) {
  std::ifstream file(path);
  for (std::string name, line; file >> name && std::getline(file, line);) {
    std::uint64_t value = 0;
    if (name == key && std::istringstream(line) >> value) return value;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> difference(std::optional<std::uint64_t> whole, std::optional<std::uint64_t> part) {
  if (!whole || !part) return std::nullopt;
  return *whole - std::min(*whole, *part);
}

class Least {
 public:
  void consider(std::optional<std::uint64_t> bytes, fs::path const& file) {
    if (bytes && (!least_ || *bytes < least_->bytes)) least_ = MemoryLimit{*bytes, file.string()};
  }
  [[nodiscard]] std::optional<MemoryLimit> take() { return std::move(least_); }

 private:
  std::optional<MemoryLimit> least_;
};

}  // namespace

std::optional<MemoryLimit> control_group_limit(fs::path const& root) {
  Least least;
  for (auto const& mount : mounts(root)) {
    auto const group = own_group(root, mount.kind);
    if (!group) continue;
    auto const top = root / mount.place;
    auto const parts = below(mount, *group);
    auto at = top;
    auto next = parts.begin();
    for (;;) {
      if (mount.kind == Hierarchy::version_2) {
        for (auto const* name : {"memory.max", "memory.high"}) least.consider(read_limit(at / name), at / name);
      } else {
        least.consider(read_limit(at / "memory.limit_in_bytes"), at / "memory.limit_in_bytes");
      }
      if (next == parts.end()) break;
      at /= *next++;
    }
    // This value includes the limits of parents outside the container's view.
    if (mount.kind == Hierarchy::version_1)
      least.consider(read_limit(at / "memory.stat", "hierarchical_memory_limit "), at / "memory.stat");
  }
  return least.take();
}

MemoryLimit memory_limit(fs::path const& root) {
  auto const pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  MemoryLimit machine{std::numeric_limits<std::uint64_t>::max(), "the machine"};
  if (pages > 0 && page_bytes > 0)
    machine.bytes = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
  auto group = control_group_limit(root);
  return group && group->bytes < machine.bytes ? std::move(*group) : machine;
}

std::optional<std::uint64_t> memory_used(MemoryLimit const& limit, fs::path const& root) {
  auto const file = fs::path(limit.source);
  auto const group = file.parent_path();
  if (file.filename() == "memory.max" || file.filename() == "memory.high")
    return difference(read_limit(group / "memory.current"), read_entry(group / "memory.stat", "inactive_file"));
  if (group.has_filename())  // version 1
    return difference(read_limit(group / "memory.usage_in_bytes"),
                      read_entry(group / "memory.stat", "total_inactive_file"));
  auto const kib =
      difference(read_entry(root / "proc/meminfo", "MemTotal:"), read_entry(root / "proc/meminfo", "MemAvailable:"));
  return kib ? std::optional(*kib * 1024) : std::nullopt;
}

}  // namespace chorus::http
