// Who this worker is: drawn or given once at the start of the process, never changed afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "collectives/core/result.hpp"

namespace chorus::service {

struct Identity {
  std::string id;                 // [A-Za-z0-9._-]{1,64}
  std::uint64_t incarnation = 0;  // of this process: a restarted worker has the same id and another incarnation
  std::string url;                // where peers and the coordinator reach it
};

[[nodiscard]] bool is_valid_worker_id(std::string_view id);

// The URL for a worker that advertises HOST or HOST:PORT (an IPv6 address alone needs no brackets); without a port it
// is the one that was bound. Errors: HttpErrc::bad_url, with the text.
[[nodiscard]] Result<std::string> advertised_url(std::string_view advertise, std::string_view scheme,
                                                 std::uint16_t bound_port);

}  // namespace chorus::service
