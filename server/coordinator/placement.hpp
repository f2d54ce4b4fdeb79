// Where the shards of a parameter go. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "http/api/groups.hpp"
#include "http/api/parameters.hpp"

namespace chorus::coordinator {

// A request in order, with what follows from it. Problems: invalid_field with a pointer for each field that is wrong.
struct CheckedParameter {
  api::Parameter parameter;  // without epoch, state and endpoints; clients as asked for
  std::uint64_t elements = 0;
  std::uint64_t row_elements = 1;
  std::optional<std::uint32_t> shards;
};
[[nodiscard]] http::Checked<CheckedParameter> check_parameter(std::string name, api::ParameterRequest request);

// Contiguous ranges of the parameter's elements, as equal as whole rows allow; of whole elements where there are fewer
// rows than shards. As many as asked for; otherwise one for each of `members`, none below 256 KiB, and more of a large
// one: up to 24 of 8 MiB at least, as many for each member. Shards move whole, so these are what is balanced when
// members come and go.
struct ElementRange {
  std::uint64_t begin = 0, end = 0;
};
[[nodiscard]] std::vector<ElementRange> cut(CheckedParameter const& checked, std::size_t members);

// Bytes of shards and backups on each worker.
using Load = std::map<std::string, std::uint64_t, std::less<>>;

// The member with the least load, in rank order where they are equal; `avoided` only if there is no other.
[[nodiscard]] api::Member const& least_loaded(std::vector<api::Member> const& members, Load const& load,
                                              std::vector<std::string> const& avoided);

// Who should have a shard of `bytes` instead of its owner, so that the busier of the two is less busy than before;
// null: it is well where it is.
[[nodiscard]] api::Member const* pick_better_owner(std::vector<api::Member> const& members, api::Member const& owner,
                                                   std::string const& backup, std::uint64_t bytes, Load const& load);

// Who is to hold a backup of what `owner` has: the farther away the better (another zone before another rack before
// another host), then the least load. Null: there is nobody else.
[[nodiscard]] api::Member const* pick_backup(std::vector<api::Member> const& members, api::Member const& owner,
                                             Load const& load);

}  // namespace chorus::coordinator
