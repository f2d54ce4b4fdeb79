#include <algorithm>
#include <cstring>
#include <vector>

#include "library/arguments.hpp"
#include "library/border.hpp"

using namespace chorus::library;

namespace {

constexpr std::size_t first_group_info = 32;

// Hands a group that was joined over to the program.
chorus_status_t take(chorus::Result<chorus::JoinedGroup> joined, chorus_group_t** group, chorus_error_t* error) {
  if (joined.has_error()) return tell(error, joined.error());
  *group = new chorus_group{std::move(*joined)};
  return CHORUS_OK;
}

}  // namespace

chorus_status_t chorus_worker_join(chorus_worker_t* worker, char const* name, int64_t timeout_ms,
                                   chorus_group_t** group, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (worker == nullptr) return bad_argument(error, "worker is NULL");
    if (group == nullptr) return bad_argument(error, "group is NULL: there is nowhere to put the new one");
    *group = nullptr;
    if (name == nullptr) return bad_argument(error, "name is NULL");
    auto const deadline = to_deadline(timeout_ms);
    if (deadline.has_error()) return tell(error, deadline.error());
    return with_worker(*worker, error, [&](chorus::Worker& running) -> chorus_status_t {
      return take(running.join(name, *deadline), group, error);
    });
  });
}

chorus_status_t chorus_worker_create_group(chorus_worker_t* worker, char const* name,
                                           chorus_group_options_t const* options, int64_t timeout_ms,
                                           chorus_group_t** group, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (worker == nullptr) return bad_argument(error, "worker is NULL");
    if (group == nullptr) return bad_argument(error, "group is NULL: there is nowhere to put the new one");
    *group = nullptr;
    if (name == nullptr) return bad_argument(error, "name is NULL");
    auto const members = to_options(options);
    if (members.has_error()) return tell(error, members.error());
    auto const deadline = to_deadline(timeout_ms);
    if (deadline.has_error()) return tell(error, deadline.error());
    return with_worker(*worker, error, [&](chorus::Worker& running) -> chorus_status_t {
      return take(running.create_group(name, *members, *deadline), group, error);
    });
  });
}

chorus_status_t chorus_group_subgroup(chorus_group_t* group, uint32_t const* ranks, size_t count, int64_t timeout_ms,
                                      chorus_group_t** subgroup, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (subgroup == nullptr) return bad_argument(error, "subgroup is NULL: there is nowhere to put the new one");
    *subgroup = nullptr;
    if (group == nullptr) return bad_argument(error, "group is NULL");
    if (ranks == nullptr || count == 0) return bad_argument(error, "a subgroup needs ranks");
    auto const& joined = group->group;
    if (count > joined.size())
      return bad_argument(error, std::to_string(count) + " ranks of a subgroup: group " + joined.name() + " has " +
                                     std::to_string(joined.size()));
    auto const deadline = to_deadline(timeout_ms);
    if (deadline.has_error()) return tell(error, deadline.error());
    return take(joined.subgroup(std::vector(ranks, ranks + count), *deadline), subgroup, error);
  });
}

chorus_status_t chorus_worker_delete_group(chorus_worker_t* worker, char const* name, int64_t timeout_ms,
                                           chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (worker == nullptr) return bad_argument(error, "worker is NULL");
    if (name == nullptr) return bad_argument(error, "name is NULL");
    auto const deadline = to_deadline(timeout_ms);
    if (deadline.has_error()) return tell(error, deadline.error());
    return with_worker(*worker, error, [&](chorus::Worker& running) -> chorus_status_t {
      auto const deleted = running.delete_group(name, *deadline);
      if (deleted.has_error()) return tell(error, deleted.error());
      return CHORUS_OK;
    });
  });
}

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
