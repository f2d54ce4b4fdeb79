#include "metrics/families/process_families.hpp"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>

namespace chorus::metrics {
namespace {

double seconds(timeval const& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

std::optional<double> entries_of(char const* path) {
  std::unique_ptr<DIR, int (*)(DIR*)> const directory(opendir(path), &closedir);
  if (!directory) return std::nullopt;
  double entries = 0;
  while (auto const* entry = readdir(directory.get()))
    if (entry->d_name[0] != '.') ++entries;
  return entries;
}

}  // namespace

Families process_families() {
  Families families;
  if (rusage usage{}; getrusage(RUSAGE_SELF, &usage) == 0)
    families.push_back(single(Id::process_cpu, seconds(usage.ru_utime) + seconds(usage.ru_stime)));
  double virtual_pages = 0, resident_pages = 0;
  if (std::ifstream pages("/proc/self/statm"); pages >> virtual_pages >> resident_pages) {
    auto const page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    families.push_back(single(Id::process_virtual_memory, virtual_pages * page_bytes));
    families.push_back(single(Id::process_resident_memory, resident_pages * page_bytes));
  }
  // One descriptor is that of the directory being read.
  if (auto const open = entries_of("/proc/self/fd")) families.push_back(single(Id::process_open_fds, *open - 1));
  if (rlimit limit{}; getrlimit(RLIMIT_NOFILE, &limit) == 0)
    families.push_back(single(Id::process_max_fds, static_cast<double>(limit.rlim_cur)));
  if (auto const threads = entries_of("/proc/self/task")) families.push_back(single(Id::process_threads, *threads));
  return families;
}

}  // namespace chorus::metrics
