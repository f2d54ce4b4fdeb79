// The model's constants from and as the text of a file.
#pragma once

#include <string>

#include "collectives/core/result.hpp"
#include "collectives/model/select.hpp"
#include "http/api/constants.hpp"

namespace chorus::calibration {

// `constants` with what is given. Errors: std::errc::invalid_argument for a value that is no cost.
[[nodiscard]] Result<model::Constants> apply(api::ModelConstants const& given, model::Constants constants);

// The defaults with what the file says. Errors: what the system said, or what is wrong with the text.
[[nodiscard]] Result<model::Constants> read_constants(std::string const& path);

}  // namespace chorus::calibration
