// Parts of answers as people read them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectives/core/locality.hpp"
#include "http/api/collectives.hpp"
#include "http/api/groups.hpp"

namespace chorus::cli {

[[nodiscard]] std::string join(std::span<std::string const> parts, std::string_view separator);

// "eu/eu-1/r7/h3", the outermost first; parts that nobody reported are "-", and "" when none was.
[[nodiscard]] std::string format_locality(Locality const& locality);

// "root 1,2", "leaf 0", "member 3>1": the name, then whom it receives from and sends to; one list where they are equal.
// Long lists end in "+N".
[[nodiscard]] std::string format_role(api::RoleInAlgorithm const& role);

// "ring", "tree arity 2 root 0": with the parameters that mean something to the algorithm.
[[nodiscard]] std::string format_algorithm(std::string const& name, std::uint32_t root, std::uint32_t arity,
                                           std::vector<std::uint32_t> const& shape);

// "0 3 2 1, average stretch 2.63 as listed, 1.00 so": which row became which rank. Long orders end in "+N".
[[nodiscard]] std::string format_order(std::vector<std::uint32_t> const& order, api::Stretch const& stretch);

// succeeded, failed or cancelled
[[nodiscard]] bool has_ended(api::Collective const& collective);

}  // namespace chorus::cli
