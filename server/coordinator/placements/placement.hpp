// Chooses the workers for the shards of a parameter. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "http/api/collectives/groups.hpp"
#include "http/api/parameters/parameters.hpp"

namespace chorus::coordinator {

// A checked request with derived values. Problems: invalid_field with a pointer for each wrong field.
struct CheckedParameter {
  api::Parameter parameter;  // without epoch, state and endpoints; clients as requested
  std::uint64_t elements = 0;
  std::uint64_t row_elements = 1;
  std::optional<std::uint32_t> shards;
};
[[nodiscard]] http::Checked<CheckedParameter> check_parameter(std::string name, api::ParameterRequest request);

// A contiguous range of the parameter's elements. cut() makes ranges as equal as whole rows allow, or of whole elements
// if there are fewer rows than shards. The request may give their number. Otherwise there is one range per member, but
// none below 256 KiB; a large parameter has up to 24 ranges of at least 8 MiB, equally many per member. Shards move as
// a whole, so these ranges are the unit of balance when members come and go.
struct ElementRange {
  std::uint64_t begin = 0, end = 0;
};
[[nodiscard]] std::vector<ElementRange> cut(CheckedParameter const& checked, std::size_t members);

// Bytes of shards and backups on each worker.
using Load = std::map<std::string, std::uint64_t, std::less<>>;

// Returns the member with the least load, the lowest rank among equals; one of `avoided` only if there is no other.
[[nodiscard]] api::Member const& least_loaded(std::vector<api::Member> const& members, Load const& load,
                                              std::vector<std::string> const& avoided);

// Returns a better owner for a shard of `bytes`, so that the busier of the two workers gets less busy; null if the
// shard stays.
[[nodiscard]] api::Member const* pick_better_owner(std::vector<api::Member> const& members, api::Member const& owner,
                                                   std::string const& backup, std::uint64_t bytes, Load const& load);

// Returns a worker for a backup of the owner's data: the farthest one (another zone before another rack before another
// host), then the one with the least load. Null if there is no other worker.
[[nodiscard]] api::Member const* pick_backup(std::vector<api::Member> const& members, api::Member const& owner,
                                             Load const& load);

}  // namespace chorus::coordinator
