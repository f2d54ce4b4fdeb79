// The command line as settings that can be shown.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "http/api/cluster/status.hpp"

namespace chorus::coordinator {

// Every option that was declared with capture_default_str(), or that has a value, in the order of their declaration.
// Flags name files of secrets, never the secrets.
[[nodiscard]] std::vector<api::Setting> settings_of(CLI::App const& app);

}  // namespace chorus::coordinator
