// The output of `chorus top`, as text that fits the screen and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "http/api/cluster/membership.hpp"
#include "http/api/collectives/collectives.hpp"
#include "server/cli/output/terminal.hpp"

namespace chorus::cli {

struct Snapshot {
  std::string coordinator;
  std::string at;  // time of day
  std::vector<api::Worker> workers;
  std::uint64_t groups = 0, degraded = 0;
  std::vector<api::Collective> collectives;  // the newest first: some, and all that run
  std::string failure;                       // reason why the coordinator did not answer
};

// Returns at most size.rows lines of at most size.columns characters. There is no line end after the last line, because
// it would scroll the first line away. The last line of each part counts the lines that do not fit; workers that are
// not ready come first.
[[nodiscard]] std::string top_screen(Snapshot const& now, ScreenSize size);

// Returns one line.
[[nodiscard]] std::string top_json(Snapshot const& now);

}  // namespace chorus::cli
