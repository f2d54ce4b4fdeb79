// The flags by which a service is protected, the same for coordinator and worker.
#pragma once

#include <CLI/CLI.hpp>

#include "http/auth/security.hpp"

namespace chorus::http {

// `options` outlives the parsing. Every flag may come from the environment.
void add_security_flags(CLI::App& app, SecurityOptions& options);

}  // namespace chorus::http
