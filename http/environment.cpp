#include "http/environment.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string_view>

namespace chorus::http {

void ignore_service_links() {
  auto const* const port = std::getenv("CHORUS_PORT");
  if (port != nullptr && std::string_view(port).starts_with("tcp://")) ::unsetenv("CHORUS_PORT");
}

std::size_t prepare_for_connections(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::min<std::size_t>(wanted, 512);
  auto const raised = rlimit{limit.rlim_max, limit.rlim_max};
  if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return std::min<std::size_t>(wanted, limit.rlim_cur / 2);
}

void ignore_broken_pipes() { std::signal(SIGPIPE, SIG_IGN); }

}  // namespace chorus::http
