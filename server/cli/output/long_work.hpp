// The output format of commands that work for long: tables for a terminal, lines of JSON for a program.
#pragma once

#include <CLI/CLI.hpp>

#include "server/cli/connection/session.hpp"

namespace chorus::cli {

// Adds --table: output for people, even if standard output is not a terminal. `table` outlives the command.
void add_table(CLI::App& command, bool& table);

// True if JSON was requested, or standard output is no terminal and --table was not given.
[[nodiscard]] bool gives_lines(Session const& session, bool table);

}  // namespace chorus::cli
