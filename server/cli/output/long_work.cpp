#include "server/cli/output/long_work.hpp"

#include <unistd.h>

namespace chorus::cli {

void add_table(CLI::App& command, bool& table) {
  command.add_flag("--table", table, "a table, also where the output is no terminal");
}

bool gives_lines(Session const& session, bool table) { return session.json || (!table && isatty(STDOUT_FILENO) == 0); }

}  // namespace chorus::cli
