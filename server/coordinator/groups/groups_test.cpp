#include <doctest/doctest.h>

#include <algorithm>

#include "server/coordinator/groups/groups.hpp"
#include "server/coordinator/topology/selection_table.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using http::ProblemCode;

namespace {

TimePoint const start{std::chrono::hours(1)};

struct Given {
  std::string id;
  std::string rack;
};

Membership members(std::vector<Given> const& given) {
  Membership membership(std::chrono::milliseconds(1000));
  for (auto const& [id, rack] : given)
    CHECK(membership.join({id, 1, "http://" + id + ":1", {"eu", "z", rack, id}, "1"}, start).has_value());
  return membership;
}

std::vector<std::string> picked(api::GroupRequest const& request, Membership const& membership,
                                api::Group const* former = nullptr) {
  std::vector<std::string> ids;
  auto const workers = pick_members(request, membership, former);
  REQUIRE(workers.has_value());
  for (auto const& worker : workers.value()) ids.push_back(worker.id);
  return ids;
}

http::Problem refused(api::GroupRequest const& request, Membership const& membership) {
  auto const workers = pick_members(request, membership, nullptr);
  REQUIRE(workers.has_error());
  return workers.error();
}

api::GroupRequest listed(std::vector<std::string> ids) { return {.workers = std::move(ids)}; }
api::GroupRequest sized(std::uint32_t size) { return {.size = size}; }
api::GroupRequest elastic(api::GroupRequest request, std::uint32_t min_ranks) {
  request.on_failure = "shrink";
  request.min_ranks = min_ranks;
  return request;
}

RankAssignment arranged(std::vector<Worker> const& workers, api::Group const* former, bool ranks_as_listed = false) {
  Standing standing;
  for (auto const& worker : workers) standing.localities.push_back(worker.locality);
  auto seniority = seniority_of(workers, FormerMembers(former), !ranks_as_listed);
  seniority.ranks_as_listed = ranks_as_listed;
  return arrange(standing, seniority, model::Constants::defaults()).value();
}

api::Group group_of(Groups& groups, std::string const& name, Membership const& membership,
                    api::GroupRequest const& request) {
  auto const present = groups.find(name);
  auto const former = present.has_value() ? present.value() : nullptr;
  auto const workers = pick_members(request, membership, former.get()).value();
  auto const epoch = groups.draw_epoch(name);
  auto const arrangement = arranged(workers, former.get(), is_listed(request));
  return groups.publish(make_group(name, epoch, request, workers, arrangement, former.get()), membership);
}

std::vector<std::string> in_rank_order(api::Group const& group) {
  std::vector<std::string> ids;
  for (auto const& member : group.members) ids.push_back(member.worker);
  return ids;
}

std::vector<std::uint32_t> since_epochs(api::Group const& group) {
  std::vector<std::uint32_t> epochs;
  for (auto const& member : group.members) epochs.push_back(member.since_epoch.value_or(0));
  return epochs;
}

}  // namespace

TEST_CASE("a group that may shrink takes the ready workers, down to its minimum") {
  auto membership = members({{"a", "r"}, {"b", "r"}, {"c", "r"}});
  CHECK(membership.mark_lost("c", 1));
  CHECK(picked(elastic(listed({"b", "c", "a", "later"}), 2), membership) == std::vector<std::string>{"b", "a"});
  CHECK(picked(elastic(sized(5), 2), membership) == std::vector<std::string>{"a", "b"});
  auto const few = refused(elastic(listed({"b", "c", "a"}), 3), membership);
  CHECK(few.code == ProblemCode::not_enough_workers);
  CHECK(few.errors.front().pointer == "/min_ranks");
  CHECK(refused(elastic(sized(5), 3), membership).code == ProblemCode::not_enough_workers);
  CHECK(refused(elastic(sized(5), 6), membership).errors.front().pointer == "/min_ranks");
  CHECK(refused(elastic(sized(5), 0), membership).errors.front().pointer == "/min_ranks");
  auto unclear = sized(2);
  unclear.on_failure = "shrnk";
  CHECK(refused(unclear, membership).errors.front().pointer == "/on_failure");
  CHECK(refused(unclear, membership).errors.front().detail == "unknown on_failure 'shrnk'; did you mean 'shrink'?");
  auto disordered = sized(2);
  disordered.order = "mesured";
  CHECK(refused(disordered, membership).errors.front().detail == "unknown order 'mesured'; did you mean 'measured'?");
  disordered.order = "listed";
  CHECK(refused(disordered, membership).errors.front().detail ==
        "listed ranks are in the order of workers; expected workers instead of size");
}

TEST_CASE("listed members are taken as listed, and every wrong entry has its pointer") {
  auto membership = members({{"a", "r"}, {"b", "r"}, {"c", "r"}});
  CHECK(membership.mark_lost("c", 1));
  CHECK(picked(listed({"b", "a"}), membership) == std::vector<std::string>{"b", "a"});

  auto const unknown = refused(listed({"a", "x", "b", "y"}), membership);
  CHECK(unknown.code == ProblemCode::unknown_worker);
  CHECK(unknown.errors.size() == 2);
  CHECK(unknown.errors[0].pointer == "/workers/1");
  CHECK(unknown.errors[1].pointer == "/workers/3");

  auto const twice = refused(listed({"a", "b", "a"}), membership);
  CHECK(twice.code == ProblemCode::invalid_field);
  CHECK(twice.errors.front().pointer == "/workers/2");
  CHECK(refused(listed({"a", "b c"}), membership).errors.front().pointer == "/workers/1");

  auto const lost = refused(listed({"a", "c"}), membership);
  CHECK(lost.code == ProblemCode::not_enough_workers);
  CHECK(lost.errors.front().pointer == "/workers/1");

  CHECK(refused(listed({}), membership).errors.front().pointer == "/workers");
  CHECK(refused(listed(std::vector<std::string>(257, "a")), membership).code == ProblemCode::invalid_field);
}

TEST_CASE("a size takes the ready workers that are closest together") {
  auto const membership = members({{"a", "r1"}, {"b", "r2"}, {"c", "r1"}, {"d", "r2"}, {"e", "r2"}});
  CHECK(picked(sized(3), membership) == std::vector<std::string>{"b", "d", "e"});
  CHECK(picked(sized(2), membership) == std::vector<std::string>{"a", "c"});
  CHECK(picked(sized(5), membership).size() == 5);
  CHECK(refused(sized(0), membership).errors.front().pointer == "/size");
  auto const many = refused(sized(6), membership);
  CHECK(many.code == ProblemCode::not_enough_workers);
  CHECK(many.detail == "a group of 6 was asked for and 5 workers are ready");
  CHECK(many.errors.front().pointer == "/size");
}

TEST_CASE("a group has the segment size: longer if more members than cores are on a host") {
  std::vector<Locality> const one_host(9, Locality{"", "", "", "h"});
  auto const segment_bytes = [&](std::size_t members) {
    std::vector<Locality> const places(one_host.begin(), one_host.begin() + static_cast<std::ptrdiff_t>(members));
    return arrange({places}, {}, model::Constants::defaults()).value().segment_bytes;
  };
  CHECK(segment_bytes(8) == 262144);
  CHECK(segment_bytes(9) == 1048576);

  auto const membership = members({{"a", "r"}, {"b", "r"}});
  Groups groups;
  CHECK(group_of(groups, "g", membership, sized(2)).segment_bytes == 262144);
}

TEST_CASE("a request has exactly one of workers and size") {
  auto const membership = members({{"a", "r"}});
  CHECK(refused({}, membership).code == ProblemCode::invalid_field);
  CHECK(refused({std::vector<std::string>{"a"}, 1u}, membership).code == ProblemCode::invalid_field);
}

TEST_CASE("ranks follow locality, and every rank has its role in the shown algorithms") {
  auto const membership = members({{"a", "r1"}, {"b", "r2"}, {"c", "r1"}, {"d", "r2"}});
  Groups groups;
  auto const group = group_of(groups, "g", membership, sized(4));
  CHECK(in_rank_order(group) == std::vector<std::string>{"a", "c", "b", "d"});
  CHECK(group.stretch.assigned < group.stretch.arrival_order);
  CHECK(group.epoch == 1);
  CHECK(group.state == "ready");
  for (auto const& member : group.members) {
    CHECK(member.roles.size() >= 3);  // centralized, tree and ring, and the choice of the table
    for (auto const& role : member.roles) {
      CHECK_FALSE(role.role.empty());
      CHECK_FALSE(role.sends_to.empty());
    }
  }
  CHECK_FALSE(group.selection.empty());
  CHECK_FALSE(group.selection.back().max_bytes.has_value());
}

TEST_CASE("the same workers get the same ranks, whichever of them joined first") {
  std::vector<Given> arrival{{"w0", "r1"}, {"w1", "r1"}, {"w2", "r2"}, {"w3", "r2"}};
  std::ranges::sort(arrival, {}, &Given::id);
  do {
    auto const membership = members(arrival);
    Groups groups;
    auto const group = group_of(groups, "g", membership, sized(4));
    CHECK(in_rank_order(group) == std::vector<std::string>{"w0", "w1", "w2", "w3"});
    CHECK(since_epochs(group) == std::vector<std::uint32_t>{1, 1, 1, 1});
    auto const listed_so = group_of(groups, "h", membership, listed({"w3", "w1", "w2", "w0"}));
    CHECK(in_rank_order(listed_so) == in_rank_order(group));
    // Also with more workers than places: in two racks, and within one rack.
    CHECK(in_rank_order(group_of(groups, "two", membership, sized(2))) == std::vector<std::string>{"w0", "w1"});
    CHECK(in_rank_order(group_of(groups, "one", membership, sized(1))) == std::vector<std::string>{"w0"});
    CHECK(in_rank_order(group_of(groups, "three", membership, sized(3))) == std::vector<std::string>{"w0", "w1", "w2"});
  } while (std::ranges::next_permutation(arrival, {}, &Given::id).found);
}

TEST_CASE("a group of a size keeps its members when a worker joins whose id comes before theirs") {
  auto membership = members({{"m", "r"}, {"n", "r"}});
  Groups groups;
  auto const first = group_of(groups, "g", membership, sized(2));
  CHECK(membership.join({"a", 1, "http://a:1", {"eu", "z", "r", "a"}, "1"}, start).has_value());
  CHECK(picked(sized(2), membership, &first) == std::vector<std::string>{"m", "n"});
  CHECK(in_rank_order(group_of(groups, "g", membership, sized(2))) == std::vector<std::string>{"m", "n"});
  CHECK(in_rank_order(group_of(groups, "new", membership, sized(2))) == std::vector<std::string>{"a", "m"});
}

TEST_CASE("survivors keep their order and precede a newcomer, also a closer one") {
  auto membership = members({{"a", "r1"}, {"b", "r1"}, {"c", "r2"}, {"d", "r2"}});
  Groups groups;
  CHECK(in_rank_order(group_of(groups, "g", membership, sized(4))) == std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(membership.mark_lost("a", 1));
  auto const shrunk = group_of(groups, "g", membership, elastic(sized(4), 1));
  CHECK(in_rank_order(shrunk) == std::vector<std::string>{"b", "c", "d"});
  CHECK(since_epochs(shrunk) == std::vector<std::uint32_t>{1, 1, 1});

  // The same id, but a new process without the group's state: rank 0 stays with a worker that has the state.
  CHECK(membership.join({"a", 2, "http://a:2", {"eu", "z", "r1", "a"}, "1"}, start).has_value());
  auto const grown = group_of(groups, "g", membership, elastic(sized(4), 1));
  CHECK(in_rank_order(grown) == std::vector<std::string>{"b", "c", "d", "a"});
  CHECK(since_epochs(grown) == std::vector<std::uint32_t>{1, 1, 1, 3});
}

TEST_CASE("several newcomers follow the survivors by locality, with ties by id") {
  auto membership = members({{"m", "r2"}});
  Groups groups;
  CHECK(group_of(groups, "g", membership, sized(1)).members.size() == 1);
  for (auto const& [id, rack] : std::vector<Given>{{"z", "r1"}, {"y", "r2"}, {"c", "r1"}, {"b", "r2"}})
    CHECK(membership.join({id, 1, "http://" + id + ":1", {"eu", "z", rack, id}, "1"}, start).has_value());
  auto const group = group_of(groups, "g", membership, sized(5));
  CHECK(in_rank_order(group) == std::vector<std::string>{"m", "b", "y", "c", "z"});
  CHECK(since_epochs(group) == std::vector<std::uint32_t>{1, 2, 2, 2, 2});
}

TEST_CASE("listed ranks are in the order of the workers, and positions follow the racks") {
  auto membership = members({{"a", "r1"}, {"b", "r2"}, {"c", "r1"}, {"d", "r2"}});
  auto request = listed({"d", "c", "b", "a"});  // from rack to rack
  request.order = "listed";
  Groups groups;
  auto const group = group_of(groups, "g", membership, request);
  CHECK(group.order == "listed");
  CHECK(in_rank_order(group) == std::vector<std::string>{"d", "c", "b", "a"});
  REQUIRE(group.by_position.has_value());
  CHECK(*group.by_position == std::vector<std::uint32_t>{3, 1, 2, 0});  // a and c, then b and d
  CHECK(groups.standing(group).by_position == *group.by_position);

  // Everything else is that of a group whose ranks follow locality, with the ranks at its positions.
  auto const by_locality = group_of(groups, "h", membership, listed({"a", "b", "c", "d"}));
  CHECK(in_rank_order(by_locality) == std::vector<std::string>{"a", "c", "b", "d"});
  CHECK_FALSE(by_locality.by_position.has_value());
  CHECK(group.stretch.assigned == by_locality.stretch.assigned);
  REQUIRE(group.selection.size() == by_locality.selection.size());
  for (std::size_t i = 0; i < group.selection.size(); ++i) {
    CHECK(group.selection[i].algorithm == by_locality.selection[i].algorithm);
    CHECK(group.selection[i].root == group.by_position->at(by_locality.selection[i].root));
  }
  for (auto const& role : group.members[0].roles)
    if (role.algorithm == "ring") CHECK(role.sends_to == std::vector<std::uint32_t>{3});  // d is last, a is first
}

TEST_CASE("ranks that are listed by rack have no positions of their own") {
  auto membership = members({{"a", "r1"}, {"b", "r2"}, {"c", "r1"}, {"d", "r2"}});
  auto request = listed({"a", "c", "b", "d"});
  request.order = "listed";
  Groups groups;
  auto const group = group_of(groups, "g", membership, request);
  CHECK(in_rank_order(group) == std::vector<std::string>{"a", "c", "b", "d"});
  CHECK_FALSE(group.by_position.has_value());
}

TEST_CASE("a group is degraded when a member is lost, until a new epoch is published") {
  auto membership = members({{"a", "r"}, {"b", "r"}, {"c", "r"}});
  Groups groups;
  auto const both = group_of(groups, "both", membership, sized(3));
  CHECK(group_of(groups, "ab", membership, listed({"a", "b"})).epoch == 1);
  CHECK_FALSE(groups.unusable(both).has_value());

  CHECK(membership.mark_lost("c", 1));
  CHECK(groups.worker_lost("c", 2).empty());
  CHECK(groups.worker_lost("c", 1) == std::vector<std::string>{"both"});
  auto const degraded = *groups.find("both").value();
  CHECK(degraded.state == "degraded");
  CHECK(degraded.lost == std::vector<std::string>{"c"});
  CHECK(degraded.epoch == 1);
  auto const problem = groups.unusable(degraded);
  REQUIRE(problem.has_value());
  CHECK(problem->code == ProblemCode::group_broken);
  CHECK(problem->ranks == std::vector<std::uint32_t>{2});
  CHECK(problem->detail.find("'c'") != std::string::npos);
  CHECK_FALSE(groups.unusable(*groups.find("ab").value()).has_value());

  auto const mended = group_of(groups, "both", membership, sized(2));
  CHECK(mended.epoch == 2);
  CHECK(mended.state == "ready");
  CHECK(mended.lost.empty());
}

TEST_CASE("a member that was lost or replaced while its group was made is lost from the beginning") {
  auto membership = members({{"a", "r"}, {"b", "r"}});
  Groups groups;
  auto const workers = pick_members(sized(2), membership, nullptr).value();
  CHECK(membership.join({"b", 2, "http://b:1", {}, "1"}, start).value().fenced == 1);
  auto const group = groups.publish(make_group("g", 1, sized(2), workers, arranged(workers, nullptr)), membership);
  CHECK(group.state == "degraded");
  CHECK(group.lost == std::vector<std::string>{"b"});
}

TEST_CASE("members are sent the table of formats, unless one is of a release that would refuse it") {
  auto const release = [&](std::string const& of_b) {
    auto membership = members({{"a", "r"}, {"b", "s"}});
    REQUIRE(membership.join({"b", 1, "http://b:1", {"", "", "s", "b"}, of_b}, start).has_value());
    auto const workers = pick_members(sized(2), membership, nullptr).value();
    return make_group("g", 1, sized(2), workers, arranged(workers, nullptr), nullptr).compression.has_value();
  };
  CHECK(release("0.2.0"));
  CHECK_FALSE(release("0.1.0"));
}

TEST_CASE("after a change that reached only some members nothing runs until the next epoch, which has a new number") {
  auto const membership = members({{"a", "r"}, {"b", "r"}});
  Groups groups;
  CHECK(group_of(groups, "g", membership, sized(2)).epoch == 1);
  auto const drawn = groups.draw_epoch("g");
  groups.change_failed("g", drawn);
  auto const broken = *groups.find("g").value();
  CHECK(broken.epoch == 1);
  CHECK(groups.unusable(broken)->detail.find("epoch 2 reached only some") != std::string::npos);
  auto const mended = group_of(groups, "g", membership, sized(2));
  CHECK(mended.epoch == 3);
  CHECK_FALSE(groups.unusable(mended).has_value());
}

TEST_CASE("a deleted group is unknown, and its name continues with higher epochs") {
  auto const membership = members({{"a", "r"}});
  Groups groups;
  CHECK(group_of(groups, "g", membership, sized(1)).epoch == 1);
  CHECK(groups.names_with("a") == std::vector<std::string>{"g"});
  CHECK(groups.erase("g").value().group.epoch == 1);
  CHECK(groups.names_with("a").empty());
  CHECK(groups.find("g").error().code == ProblemCode::unknown_group);
  CHECK(groups.erase("g").error().code == ProblemCode::unknown_group);
  CHECK(group_of(groups, "g", membership, sized(1)).epoch == 2);
}

TEST_CASE("the groups of a worker are those that it is a member of now") {
  auto const membership = members({{"a", "r"}, {"b", "r"}});
  Groups groups;
  group_of(groups, "g", membership, listed({"a", "b"}));
  group_of(groups, "h", membership, listed({"a"}));
  CHECK(groups.names_with("a") == std::vector<std::string>{"g", "h"});
  group_of(groups, "g", membership, listed({"b"}));
  CHECK(groups.names_with("a") == std::vector<std::string>{"h"});
  CHECK(groups.names_with("b") == std::vector<std::string>{"g"});
}

TEST_CASE("neighbouring sizes with the same choice make one line of the table") {
  auto const choice = [](std::string algorithm, std::uint32_t arity, std::string reason) {
    model::Choice made;
    made.spec.algorithm = std::move(algorithm);
    made.spec.arity = arity;
    made.reason = std::move(reason);
    return made;
  };
  std::vector<SizedChoice> const by_size{{4, choice("tree", 2, "first")},
                                         {16, choice("tree", 2, "second")},
                                         {64, choice("tree", 4, "third")},
                                         {256, choice("ring", 2, "fourth")},
                                         {1024, choice("ring", 2, "fifth")}};
  auto const table = merge_choices(by_size);
  REQUIRE(table.size() == 3);
  CHECK(table[0].algorithm == "tree");
  CHECK(table[0].max_bytes == 16);
  CHECK(table[0].reason == "at 16 bytes second");
  CHECK(table[1].arity == 4);
  CHECK(table[1].max_bytes == 64);
  CHECK(table[2].algorithm == "ring");
  CHECK_FALSE(table[2].max_bytes.has_value());
  CHECK(table[2].op == "all_reduce");
}

TEST_CASE("the table agrees with the model at every size, and its lines ascend") {
  std::vector<Locality> const localities{
      {"eu", "a", "r", "1"}, {"eu", "a", "r", "2"}, {"eu", "b", "r", "3"}, {"us", "c", "r", "4"}};
  auto const constants = model::Constants::defaults();
  auto const table = selection_table(model::Network(localities, constants)).value();
  for (std::uint64_t bytes = 4; bytes <= std::uint64_t{1} << 32; bytes *= 4) {
    auto const line = std::ranges::find_if(
        table, [bytes](auto const& l) { return l.op == "all_reduce" && (!l.max_bytes || bytes <= *l.max_bytes); });
    REQUIRE(line != table.end());
    auto const choice = model::select({}, localities, bytes / 4, 4, constants).value();
    CHECK(line->algorithm == choice.spec.algorithm);
    CHECK(line->root == choice.spec.root);
    CHECK(line->arity == choice.spec.arity);
  }
  for (std::size_t i = 1; i < table.size(); ++i)
    if (table[i - 1].op == table[i].op && table[i].max_bytes) CHECK(*table[i - 1].max_bytes < *table[i].max_bytes);
  for (auto const op : all_ops) CHECK(std::ranges::count(table, name(op), &api::Selection::op) >= 1);
}
