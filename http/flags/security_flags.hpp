// The security flags, the same for coordinator and worker.
#pragma once

#include <CLI/CLI.hpp>

#include "http/server/security.hpp"

namespace chorus::http {

// `options` outlives the parsing. Every flag may also come from the environment.
void add_security_flags(CLI::App& app, SecurityOptions& options);

}  // namespace chorus::http
