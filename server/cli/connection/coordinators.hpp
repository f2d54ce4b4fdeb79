// What every coordinator of the session's list says of itself.
#pragma once

#include <string>
#include <vector>

#include "server/cli/connection/session.hpp"

namespace chorus::cli {

struct CoordinatorAnswer {
  std::string url;
  std::string state;   // leads, standby, unavailable (it answers with a problem), unreachable
  std::string leader;  // that a standby names
  std::string why;     // of one that is unavailable or unreachable
};

// In the order of the list, asked at the same time.
[[nodiscard]] std::vector<CoordinatorAnswer> ask_coordinators(Session const& session);

// "http://c2:7070: standby, http://c1:7070 leads"
[[nodiscard]] std::string format_answer(CoordinatorAnswer const& answer);

}  // namespace chorus::cli
