#include "base/runtime/memory_limit.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include "tests/support/scratch_directory.hpp"

using namespace chorus;
namespace fs = std::filesystem;
using chorus::testing::write_file;

namespace {

// The kernel's files of control groups, below a directory instead of /.
class Machine {
 public:
  void shows(std::string const& path, std::string const& content) {
    fs::create_directories(fs::path(scratch_ / path).parent_path());
    write_file(scratch_ / path, content);
  }
  void is_in(std::string const& groups) { shows("proc/self/cgroup", groups); }
  void mounts(std::string const& lines) { shows("proc/self/mountinfo", lines); }
  [[nodiscard]] std::optional<std::uint64_t> limit() const {
    auto const found = http::control_group_limit(scratch_ / "");
    return found ? std::optional(found->bytes) : std::nullopt;
  }
  [[nodiscard]] std::string source() const {
    auto const found = http::control_group_limit(scratch_ / "");
    return found ? fs::path(found->source).lexically_relative(scratch_ / "").string() : "none";
  }
  [[nodiscard]] http::MemoryLimit of_process() const { return http::memory_limit(scratch_ / ""); }
  [[nodiscard]] std::optional<std::uint64_t> used() const { return http::memory_used(of_process(), scratch_ / ""); }

 private:
  chorus::testing::ScratchDirectory scratch_;
};

constexpr auto unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr auto separate =
    "30 22 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "31 30 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
    "34 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "40 30 0:37 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

}  // namespace

TEST_CASE("a unit of systemd with MemoryMax is limited by its own group") {
  Machine machine;
  machine.mounts(unified);
  machine.is_in("0::/system.slice/chorus-worker.service\n");
  CHECK_FALSE(machine.limit());
  machine.shows("sys/fs/cgroup/system.slice/chorus-worker.service/memory.max", "268435456\n");
  CHECK(machine.limit() == 268435456);
  CHECK(machine.source() == "sys/fs/cgroup/system.slice/chorus-worker.service/memory.max");
}

TEST_CASE("the least limit from a process's own group up to the root is the one that counts") {
  Machine machine;
  machine.mounts(unified);
  machine.is_in("0::/a/b/c\n");
  machine.shows("sys/fs/cgroup/a/b/c/memory.max", "4000\n");
  machine.shows("sys/fs/cgroup/a/b/memory.max", "max\n");
  machine.shows("sys/fs/cgroup/a/memory.max", "3000\n");
  CHECK(machine.limit() == 3000);
  machine.shows("sys/fs/cgroup/memory.max", "2000\n");
  CHECK(machine.limit() == 2000);
  machine.shows("sys/fs/cgroup/a/b/c/memory.max", "1000\n");
  CHECK(machine.limit() == 1000);
  // Limits of other groups.
  machine.shows("sys/fs/cgroup/a/d/memory.max", "1\n");
  machine.shows("sys/fs/cgroup/a/b/c/d/memory.max", "1\n");
  CHECK(machine.limit() == 1000);
}

TEST_CASE("a process that the kernel would hold up above memory.high is limited by that") {
  Machine machine;
  machine.mounts(unified);
  machine.is_in("0::/a\n");
  machine.shows("sys/fs/cgroup/a/memory.max", "4000\n");
  machine.shows("sys/fs/cgroup/a/memory.high", "3000\n");
  CHECK(machine.limit() == 3000);
  machine.shows("sys/fs/cgroup/a/memory.high", "max\n");
  CHECK(machine.limit() == 4000);
}

TEST_CASE("with control groups of version 1, or of both, the hierarchy of memory counts") {
  Machine machine;
  machine.mounts(separate);
  machine.is_in("5:cpu:/other\n4:memory:/docker/x\n0::/\n");
  machine.shows("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(machine.limit());
  machine.shows("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "536870912\n");
  CHECK(machine.limit() == 536870912);
  machine.shows("sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "268435456\n");
  CHECK(machine.limit() == 268435456);
  machine.shows("sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1\n");
  CHECK(machine.limit() == 268435456);
}

TEST_CASE("version 1 tells of groups that a container does not see") {
  Machine machine;
  machine.mounts("34 30 0:31 /docker/x /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  machine.is_in("4:memory:/docker/x\n");
  machine.shows("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.shows("sys/fs/cgroup/memory/memory.stat",
                "cache 0\nhierarchical_memory_limit 1073741824\nhierarchical_memsw_limit 9223372036854771712\n");
  CHECK(machine.limit() == 1073741824);
}

TEST_CASE("a container sees its own group at the root, whatever the host calls it") {
  Machine machine;
  machine.shows("sys/fs/cgroup/memory.max", "1073741824\n");
  machine.shows("sys/fs/cgroup/child/memory.max", "536870912\n");
  machine.mounts(unified);  // with a cgroup namespace of its own
  machine.is_in("0::/\n");
  CHECK(machine.limit() == 1073741824);
  machine.is_in("0::/child\n");
  CHECK(machine.limit() == 536870912);
  machine.is_in("0::/../sibling\n");  // moved out of the namespace's root
  CHECK(machine.limit() == 1073741824);
  machine.mounts("30 23 0:26 /docker/x /sys/fs/cgroup ro - cgroup2 cgroup ro\n");  // without a namespace
  machine.is_in("0::/docker/x\n");
  CHECK(machine.limit() == 1073741824);
  machine.is_in("0::/docker/x/child\n");
  CHECK(machine.limit() == 536870912);
  machine.is_in("0::/docker/xy\n");
  CHECK(machine.limit() == 1073741824);
}

TEST_CASE("groups are found at any mount point, also in a path with a space") {
  Machine machine;
  machine.mounts("30 23 0:26 / /run/control\\040groups rw - cgroup2 none rw\n");
  machine.is_in("0::/a b:c\n");
  machine.shows("run/control groups/a b:c/memory.max", "4096\n");
  CHECK(machine.limit() == 4096);
}

TEST_CASE("without limits, or without readable files, the machine's memory is the limit") {
  auto const pages = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES));
  auto const all = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  Machine machine;
  CHECK(machine.of_process().bytes == all);
  machine.mounts("nonsense\n- -\n30 23 0:26 / /sys/fs/cgroup rw - cgroup2\n");
  machine.is_in("nonsense\n0:\n0::/a\n");
  CHECK(machine.of_process().bytes == all);
  CHECK(machine.of_process().source == "the machine");
  machine.mounts(unified);
  machine.shows("sys/fs/cgroup/a/memory.max", std::to_string(all + 1) + "\n");
  CHECK(machine.of_process().bytes == all);
  machine.shows("sys/fs/cgroup/a/memory.max", "12x\n");
  CHECK(machine.of_process().bytes == all);
  machine.shows("sys/fs/cgroup/a/memory.max", "12\n");
  CHECK(machine.of_process().bytes == 12);
}

TEST_CASE("what is used is what the group with the limit has taken, without what the kernel can give back") {
  Machine machine;
  machine.mounts(unified);
  machine.is_in("0::/a/b\n");
  machine.shows("sys/fs/cgroup/a/b/memory.max", "max\n");
  machine.shows("sys/fs/cgroup/a/b/memory.current", "100\n");
  machine.shows("sys/fs/cgroup/a/memory.max", "4000\n");
  machine.shows("sys/fs/cgroup/a/memory.current", "3000\n");
  CHECK_FALSE(machine.used());
  machine.shows("sys/fs/cgroup/a/memory.stat", "anon 1\nfile 2000\ninactive_file 1200\nactive_file 800\n");
  CHECK(machine.used() == 1800);
}

TEST_CASE("version 1 says under other names what is used") {
  Machine machine;
  machine.mounts(separate);
  machine.is_in("4:memory:/box\n0::/\n");
  machine.shows("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "4000\n");
  machine.shows("sys/fs/cgroup/memory/box/memory.usage_in_bytes", "3000\n");
  machine.shows("sys/fs/cgroup/memory/box/memory.stat", "inactive_file 1\ntotal_inactive_file 1200\n");
  CHECK(machine.used() == 1800);
}

TEST_CASE("without a limit what is used is what the machine has not available") {
  Machine machine;
  CHECK_FALSE(machine.used());
  machine.shows("proc/meminfo", "MemTotal:       30 kB\nMemFree:        1 kB\nMemAvailable:   20 kB\n");
  CHECK(machine.used() == 10240);
  CHECK(http::memory_used(http::memory_limit()).value_or(0) > 0);
}
