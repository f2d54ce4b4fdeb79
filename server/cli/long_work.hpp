// How commands that work for long tell what they have found: to somebody who sits before them in tables, to a program
// in lines of JSON.
#pragma once

#include <CLI/CLI.hpp>

#include "server/cli/session.hpp"

namespace chorus::cli {

// --table: for people, wherever standard output goes. `table` outlives the command.
void add_table(CLI::App& command, bool& table);

// Whether JSON was asked for, or standard output is no terminal and tables were not.
[[nodiscard]] bool gives_lines(Session const& session, bool table);

}  // namespace chorus::cli
