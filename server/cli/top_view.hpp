// What `chorus top` shows, as text that fits on a screen and as JSON.
#pragma once

#include <string>
#include <vector>

#include "http/api/collectives.hpp"
#include "http/api/groups.hpp"
#include "http/api/membership.hpp"
#include "server/cli/terminal.hpp"

namespace chorus::cli {

struct Snapshot {
  std::string coordinator;
  std::string at;  // time of day
  std::vector<api::Worker> workers;
  std::vector<api::Group> groups;
  std::vector<api::Collective> collectives;  // the newest first
  std::string failure;                       // the coordinator did not answer
};

// At most size.rows lines of at most size.columns characters, with line ends between them: one after the last would
// push the first out. What does not fit is counted in the last line of its part; workers that are not ready come first.
[[nodiscard]] std::string top_screen(Snapshot const& now, ScreenSize size);

// One line.
[[nodiscard]] std::string top_json(Snapshot const& now);

}  // namespace chorus::cli
