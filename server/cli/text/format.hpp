// Formats parts of answers for people.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "collectives/core/locality.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"

namespace chorus::cli {

[[nodiscard]] std::string join(std::span<std::string const> parts, std::string_view separator);

// Returns text like "eu/eu-1/r7/h3", the outermost part first; a missing part is "-"; "" if all are missing.
[[nodiscard]] std::string format_locality(Locality const& locality);

// Returns text like "root 1,2", "leaf 0", "member 3>1": the role, then the ranks from which it receives and to which it
// sends; one list if they are equal. Long lists end in "+N".
[[nodiscard]] std::string format_role(api::RoleInAlgorithm const& role);

// Returns text like "ring" or "tree arity 2 root 0", with the parameters that the algorithm uses.
[[nodiscard]] std::string format_algorithm(std::string const& name, std::uint32_t root, std::uint32_t arity,
                                           std::vector<std::uint32_t> const& shape);

// Returns text like "0 3 2 1, average stretch 2.63 as listed, 1.00 so": the row of each rank. Long orders end in "+N".
[[nodiscard]] std::string format_order(std::vector<std::uint32_t> const& order, api::Stretch const& stretch);

// True for succeeded, failed or cancelled.
[[nodiscard]] bool has_ended(api::Collective const& collective);

}  // namespace chorus::cli
