#include "http/api/collectives/groups.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(GroupAssignment, (), (group, worker, incarnation, token))
BOOST_DESCRIBE_STRUCT(GroupList, (), (items, next_cursor))

constexpr auto required(GroupAssignment const*) {
  return std::array<std::string_view, 4>{"group", "worker", "incarnation", "token"};
}
constexpr auto required(GroupList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::GroupRequest)
CHORUS_HTTP_MESSAGE(chorus::api::Member)
CHORUS_HTTP_MESSAGE(chorus::api::Group)
CHORUS_HTTP_MESSAGE(chorus::api::GroupAssignment)
CHORUS_HTTP_MESSAGE(chorus::api::GroupList)
