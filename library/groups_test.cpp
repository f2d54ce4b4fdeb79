// Groups that C programs make and delete.
#include <doctest/doctest.h>

#include <array>
#include <future>

#include "library/testing/pair.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus::library::testing;
using chorus::testing::mentions;

namespace {

constexpr std::int64_t soon_ms = 20'000;

chorus_group_options_t of(std::array<char const*, 2> const& workers) {
  chorus_group_options_t options{};
  options.size = sizeof(options);
  options.workers = workers.data();
  options.workers_length = workers.size();
  return options;
}

Group make(Worker const& worker, char const* name) {
  std::array<char const*, 2> const ids{"w1", "w0"};
  auto const options = of(ids);
  chorus_group_t* group = nullptr;
  auto const error = new_error();
  auto const status = chorus_worker_create_group(worker.get(), name, &options, soon_ms, &group, error.get());
  must(status == CHORUS_OK, chorus_error_text(error.get()));
  return Group(group);
}

std::uint32_t rank_of(Group const& group) {
  chorus_group_info_t info{};
  info.size = sizeof(info);
  must(chorus_group_describe(group.get(), &info, nullptr) == CHORUS_OK, "it is described");
  return info.rank;
}

}  // namespace

TEST_CASE("two programs make a group, divide it and delete it") {
  Pair pair;
  auto other = std::async(std::launch::async, [&] { return make(pair.workers[0], "two"); });
  auto const first = make(pair.workers[1], "two");
  auto const second = other.get();
  CHECK(rank_of(first) == 0);
  CHECK(rank_of(second) == 1);

  std::uint32_t const only = 1;
  chorus_group_t* alone = nullptr;
  REQUIRE(chorus_group_subgroup(second.get(), &only, 1, soon_ms, &alone, nullptr) == CHORUS_OK);
  Group const half(alone);
  CHECK(rank_of(half) == 0);
  CHECK(chorus_barrier(half.get(), nullptr, nullptr) == CHORUS_OK);

  CHECK(chorus_worker_delete_group(pair.workers[0].get(), "two", soon_ms, nullptr) == CHORUS_OK);
  CHECK(chorus_worker_delete_group(pair.workers[0].get(), "two", soon_ms, nullptr) == CHORUS_OK);
  CHECK(chorus_barrier(first.get(), nullptr, nullptr) == CHORUS_EPOCH_FENCED);
  CHECK(chorus_barrier(half.get(), nullptr, nullptr) == CHORUS_OK);
}

TEST_CASE("groups that cannot be made say why") {
  Pair pair;
  auto* const worker = pair.workers[0].get();
  auto const error = new_error();
  auto const refused = [&](char const* name, chorus_group_options_t const* options, char const* part) {
    auto* group = pair.groups[0].get();
    CHECK(chorus_worker_create_group(worker, name, options, soon_ms, &group, error.get()) == CHORUS_BAD_ARGUMENT);
    CHECK(group == nullptr);
    INFO(chorus_error_text(error.get()));
    CHECK(mentions(chorus_error_text(error.get()), part));
  };
  std::array<char const*, 2> ids{"w0", "w1"};
  auto const good = of(ids);
  refused(nullptr, &good, "name is NULL");
  refused("a/b", &good, "a/b");
  refused("g", &good, "already");
  refused("x", nullptr, "options is NULL");
  auto options = good;
  options.size = 39;
  refused("x", &options, "size is 39");
  options = good;
  options.reserved = 1;
  refused("x", &options, "reserved");
  options = good;
  options.ranks = 2;
  refused("x", &options, "exactly one");
  options = good;
  options.order = "backwards";
  refused("x", &options, "backwards");
  options = good;
  options.workers = nullptr;
  refused("x", &options, "workers is NULL");
  ids = {"w0", nullptr};
  refused("x", &good, "NULL in it");
  ids = {"w0", "w0"};
  refused("x", &good, "'w0' is listed twice");
  ids = {"w1", "w2"};
  refused("x", &good, "'w0'");
  ids = {"w0", "w9"};
  chorus_group_t* group = nullptr;
  CHECK(chorus_worker_create_group(worker, "x", &good, 1000, &group, error.get()) == CHORUS_NOT_ASSIGNED);
  CHECK(mentions(chorus_error_text(error.get()), "'w9'"));
  CHECK(chorus_worker_create_group(worker, "x", &good, -1, &group, error.get()) == CHORUS_BAD_ARGUMENT);
  CHECK(chorus_worker_create_group(nullptr, "x", &good, 0, &group, error.get()) == CHORUS_BAD_ARGUMENT);
  CHECK(chorus_worker_create_group(worker, "x", &good, 0, nullptr, error.get()) == CHORUS_BAD_ARGUMENT);
  CHECK(chorus_worker_delete_group(nullptr, "x", 0, nullptr) == CHORUS_BAD_ARGUMENT);
  CHECK(chorus_worker_delete_group(worker, nullptr, 0, nullptr) == CHORUS_BAD_ARGUMENT);
  CHECK(chorus_worker_delete_group(worker, "a/b", 0, nullptr) == CHORUS_BAD_ARGUMENT);
  CHECK(chorus_worker_delete_group(worker, "x", -1, nullptr) == CHORUS_BAD_ARGUMENT);
}

TEST_CASE("subgroups that cannot be say why") {
  Pair pair;
  auto* const group = pair.groups[0].get();
  auto const error = new_error();
  auto const refused = [&](chorus_group_t* of, std::uint32_t const* ranks, std::size_t count, char const* part) {
    auto* subgroup = pair.groups[1].get();
    CHECK(chorus_group_subgroup(of, ranks, count, soon_ms, &subgroup, error.get()) == CHORUS_BAD_ARGUMENT);
    CHECK(subgroup == nullptr);
    INFO(chorus_error_text(error.get()));
    CHECK(mentions(chorus_error_text(error.get()), part));
  };
  std::array<std::uint32_t, 3> const ranks{0, 0, 2};
  refused(nullptr, ranks.data(), 1, "group is NULL");
  refused(group, nullptr, 1, "needs ranks");
  refused(group, ranks.data(), 0, "needs ranks");
  refused(group, ranks.data(), SIZE_MAX, "has 2");
  refused(group, ranks.data(), 2, "twice");
  refused(group, ranks.data() + 2, 1, "has 2 ranks");
  refused(pair.groups[1].get(), ranks.data(), 1, "rank 1, which calls");
  CHECK(chorus_group_subgroup(group, ranks.data(), 1, soon_ms, nullptr, nullptr) == CHORUS_BAD_ARGUMENT);
  REQUIRE(chorus_worker_stop(pair.workers[0].get(), nullptr) == CHORUS_OK);
  chorus_group_t* subgroup = nullptr;
  CHECK(chorus_group_subgroup(group, ranks.data(), 1, soon_ms, &subgroup, nullptr) == CHORUS_ABORTED);
}
