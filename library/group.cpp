#include <algorithm>
#include <cstring>

#include "library/arguments.hpp"
#include "library/border.hpp"

using namespace chorus::library;

namespace {

constexpr std::size_t first_group_info = 32;

}  // namespace

void chorus_group_free(chorus_group_t* group) { delete group; }

chorus_status_t chorus_group_describe(chorus_group_t const* group, chorus_group_info_t* info, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (group == nullptr) return bad_argument(error, "group is NULL");
    auto const& joined = group->group;
    chorus_group_info_t const filled{0, joined.name().c_str(), joined.rank(), joined.size(), joined.epoch(), 0};
    auto const written = write_sized(info, filled, first_group_info, "chorus_group_info_t");
    if (written.has_error()) return tell(error, written.error());
    return CHORUS_OK;
  });
}

chorus_status_t chorus_group_block(chorus_group_t const* group, uint32_t rank, uint64_t elements, uint64_t* begin,
                                   uint64_t* length, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (group == nullptr) return bad_argument(error, "group is NULL");
    if (begin == nullptr || length == nullptr) return bad_argument(error, "begin or length is NULL");
    auto const& joined = group->group;
    if (rank >= joined.size())
      return bad_argument(error, "rank " + std::to_string(rank) + " in a group of " + std::to_string(joined.size()));
    auto const block = joined.block(rank, elements);
    *begin = block.begin;
    *length = block.elements;
    return CHORUS_OK;
  });
}

chorus_status_t chorus_group_path(chorus_group_t const* group, char const** path, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (group == nullptr) return bad_argument(error, "group is NULL");
    if (path == nullptr) return bad_argument(error, "path is NULL");
    auto const found = group->group.path();
    *path = found == "shm" ? "shm" : found == "links" ? "links" : "unknown";
    return CHORUS_OK;
  });
}

chorus_status_t chorus_group_why_not_shared(chorus_group_t const* group, char* text, size_t capacity, size_t* length,
                                            chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (group == nullptr) return bad_argument(error, "group is NULL");
    if (text == nullptr && capacity != 0) return bad_argument(error, "text is NULL");
    auto const why = group->group.why_not_shared();
    if (capacity != 0) {
      auto const copied = std::min(why.size(), capacity - 1);
      std::memcpy(text, why.data(), copied);
      text[copied] = 0;
    }
    if (length != nullptr) *length = why.size();
    return CHORUS_OK;
  });
}
