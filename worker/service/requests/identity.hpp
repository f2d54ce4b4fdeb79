// Name, incarnation and URL of this worker: set once at the start of the process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/core/result.hpp"

namespace chorus::service {

struct Identity {
  std::string id;                 // [A-Za-z0-9._-]{1,64}
  std::uint64_t incarnation = 0;  // of this process: a restarted worker has the same id and another incarnation
  std::string url;                // for peers and the coordinator
};

[[nodiscard]] bool is_id_character(char c);
// 1 to 64 such characters, and neither "." nor "..", which clients take for directories; the coordinator has the same
// rule.
[[nodiscard]] bool is_valid_worker_id(std::string_view id);

// The URL of a worker that advertises HOST or HOST:PORT (a bare IPv6 address needs no brackets); the default port is
// the bound one. Errors: HttpErrc::bad_url, with the text.
[[nodiscard]] Result<std::string> advertised_url(std::string_view advertise, std::string_view scheme,
                                                 std::uint16_t bound_port);

}  // namespace chorus::service
