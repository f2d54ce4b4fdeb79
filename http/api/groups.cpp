#include "http/api/groups.hpp"

#include "http/api/described.hpp"

namespace chorus::api {

BOOST_DESCRIBE_STRUCT(GroupRequest, (), (workers, size))
BOOST_DESCRIBE_STRUCT(RoleInAlgorithm, (), (algorithm, role, sends_to, receives_from))
BOOST_DESCRIBE_STRUCT(Member, (), (rank, worker, incarnation, url, locality, roles))
BOOST_DESCRIBE_STRUCT(Selection, (), (op, max_bytes, algorithm, root, arity, algorithm_shape, reason))
BOOST_DESCRIBE_STRUCT(Stretch, (), (arrival_order, assigned))
BOOST_DESCRIBE_STRUCT(Group, (), (name, epoch, state, members, lost, stretch, selection))
BOOST_DESCRIBE_STRUCT(GroupAssignment, (), (group, worker, incarnation, token))
BOOST_DESCRIBE_STRUCT(GroupList, (), (items, next_cursor))

constexpr auto required(Member const*) { return std::array<std::string_view, 2>{"rank", "worker"}; }
constexpr auto required(Selection const*) { return std::array<std::string_view, 2>{"op", "algorithm"}; }
constexpr auto required(Group const*) { return std::array<std::string_view, 3>{"name", "epoch", "members"}; }
constexpr auto required(GroupAssignment const*) {
  return std::array<std::string_view, 4>{"group", "worker", "incarnation", "token"};
}
constexpr auto required(GroupList const*) { return std::array<std::string_view, 1>{"items"}; }

}  // namespace chorus::api

CHORUS_HTTP_MESSAGE(chorus::api::GroupRequest)
CHORUS_HTTP_MESSAGE(chorus::api::Group)
CHORUS_HTTP_MESSAGE(chorus::api::GroupAssignment)
CHORUS_HTTP_MESSAGE(chorus::api::GroupList)
