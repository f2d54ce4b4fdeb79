#include "http/environment.hpp"

#include <cstdlib>
#include <string_view>

namespace chorus::http {

void ignore_service_links() {
  auto const* const port = std::getenv("CHORUS_PORT");
  if (port != nullptr && std::string_view(port).starts_with("tcp://")) ::unsetenv("CHORUS_PORT");
}

}  // namespace chorus::http
