// Reads and writes the cost model's constants as text of a file.
#pragma once

#include <string>

#include "collectives/core/result.hpp"
#include "collectives/model/choice/select.hpp"
#include "http/api/cluster/constants.hpp"

namespace chorus::calibration {

// Returns `constants` with the given values replaced. Errors: std::errc::invalid_argument for a value that is not a
// cost.
[[nodiscard]] Result<model::Constants> apply(api::ModelConstants const& given, model::Constants constants);

// Returns the defaults with the values of the file. Errors: the system's error, or the mistake in the text.
[[nodiscard]] Result<model::Constants> read_constants(std::string const& path);

}  // namespace chorus::calibration
