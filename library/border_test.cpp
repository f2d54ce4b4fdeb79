// What the C interface refuses, and how its calls fail.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include "library/border.hpp"
#include "library/testing/pair.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus::library::testing;
using chorus::testing::mentions;

namespace {

bool refuses(chorus_status_t status, ErrorObject const& error, std::string const& text) {
  INFO(chorus_error_text(error.get()));
  bool const as_said = status == CHORUS_BAD_ARGUMENT && chorus_error_status(error.get()) == CHORUS_BAD_ARGUMENT &&
                       mentions(chorus_error_text(error.get()), text);
  CHECK(as_said);
  return as_said;
}

}  // namespace

TEST_CASE("NULL in place of a handle or of a result is refused, and freeing it is nothing") {
  auto const error = new_error();
  chorus_worker_t* const no_worker = nullptr;
  chorus_group_t* const no_group = nullptr;
  chorus_group_t* group = nullptr;
  chorus_memory_t* memory = nullptr;
  chorus_request_t* request = nullptr;
  Numbers numbers{1};
  auto const x = tensor(numbers);
  auto const in = const_tensor(numbers);
  auto* const e = error.get();
  CHECK(refuses(chorus_worker_start(nullptr, nullptr, e), error, "worker is NULL"));
  CHECK(refuses(chorus_worker_stop(no_worker, e), error, "worker is NULL"));
  CHECK(refuses(chorus_worker_describe(no_worker, nullptr, e), error, "worker is NULL"));
  CHECK(refuses(chorus_worker_join(no_worker, "g", 1, &group, e), error, "worker is NULL"));
  CHECK(refuses(chorus_memory_allocate(no_worker, 1, &memory, e), error, "worker is NULL"));
  CHECK(refuses(chorus_memory_register(no_worker, &numbers, 1, &memory, e), error, "worker is NULL"));
  CHECK(refuses(chorus_group_describe(no_group, nullptr, e), error, "group is NULL"));
  CHECK(refuses(chorus_group_path(no_group, nullptr, e), error, "group is NULL"));
  CHECK(refuses(chorus_group_block(no_group, 0, 1, nullptr, nullptr, e), error, "group is NULL"));
  CHECK(refuses(chorus_group_why_not_shared(no_group, nullptr, 0, nullptr, e), error, "group is NULL"));
  CHECK(refuses(chorus_all_reduce(no_group, &in, &x, nullptr, e), error, "group is NULL"));
  CHECK(refuses(chorus_all_reduce_list(no_group, &x, 1, nullptr, e), error, "group is NULL"));
  CHECK(refuses(chorus_barrier_async(no_group, nullptr, &request, e), error, "group is NULL"));
  CHECK(refuses(chorus_barrier_async(no_group, nullptr, nullptr, e), error, "request is NULL"));
  CHECK(refuses(chorus_request_test(nullptr, e), error, "request is NULL"));
  CHECK(refuses(chorus_request_wait(nullptr, e), error, "request is NULL"));
  CHECK(refuses(chorus_request_wait_for(nullptr, 1, e), error, "request is NULL"));
  CHECK(refuses(chorus_request_cancel(nullptr, e), error, "request is NULL"));
  CHECK(refuses(chorus_all_gather_list(no_group, &in, &x, 1, nullptr, e), error, "group is NULL"));
  CHECK(refuses(chorus_all_to_all_list_async(no_group, &in, &x, 1, nullptr, &request, e), error, "group is NULL"));
  CHECK(refuses(chorus_request_wait_any(&request, 1, 1, nullptr, e), error, "index is NULL"));
  std::size_t index = 0;
  CHECK(refuses(chorus_request_wait_any(&request, 1, 1, &index, e), error, "request 0 is NULL"));
  CHECK(refuses(chorus_request_wait_any(nullptr, 0, 1, &index, e), error, "no requests"));
  chorus_worker_free(nullptr);
  chorus_group_free(nullptr);
  chorus_request_free(nullptr);
  chorus_memory_free(nullptr);
  chorus_error_free(nullptr);
  CHECK(chorus_memory_data(nullptr) == nullptr);
  CHECK(chorus_memory_bytes(nullptr) == 0);
  CHECK(chorus_error_status(nullptr) == CHORUS_OK);
  CHECK(std::string(chorus_error_text(nullptr)).empty());
  CHECK(chorus_error_ranks(nullptr, nullptr) == 0);
}

TEST_CASE("a worker by itself joins no group, and a group that nobody makes is not waited for beyond the deadline") {
  auto const error = new_error();
  auto const alone = start("alone", nullptr);
  chorus_group_t* group = nullptr;
  CHECK(chorus_worker_join(alone.get(), "g", 0, &group, error.get()) == CHORUS_NO_COORDINATOR);
  CHECK(group == nullptr);
  CHECK(refuses(chorus_worker_join(alone.get(), nullptr, 0, &group, error.get()), error, "name is NULL"));
  CHECK(refuses(chorus_worker_join(alone.get(), "no/name", 0, &group, error.get()), error, "'no/name'"));
  CHECK(refuses(chorus_worker_join(alone.get(), "g", -1, &group, error.get()), error, "timeout_ms is -1"));

  Pair pair;
  CHECK(chorus_worker_join(pair.workers[0].get(), "other", 1, &group, error.get()) == CHORUS_NOT_ASSIGNED);
  CHECK(mentions(chorus_error_text(error.get()), "other"));
}

TEST_CASE("tensors that do not fit are refused with both sizes, and a corrected call is in step") {
  Pair pair;
  auto const error = new_error();
  auto* const group = pair.groups[0].get();
  Numbers four{1, 2, 3, 4}, three(3);
  auto const in = const_tensor(four);
  auto const out = tensor(three);
  auto const in_place = tensor(four);
  CHECK(refuses(chorus_all_reduce(group, &in, &out, nullptr, error.get()), error, "not 4 and 3"));
  chorus_tensor_t const other_dtype{three.data(), 3, CHORUS_F32, 0};
  CHECK(refuses(chorus_all_reduce(group, &in, &other_dtype, nullptr, error.get()), error, "i32"));
  chorus_tensor_t const no_dtype{three.data(), 3, 99, 0};
  CHECK(refuses(chorus_all_reduce(group, nullptr, &no_dtype, nullptr, error.get()), error, "99 is no dtype"));
  CHECK(refuses(chorus_all_reduce(group, &in, nullptr, nullptr, error.get()), error, "output is NULL"));
  CHECK(refuses(chorus_broadcast(group, nullptr, nullptr, error.get()), error, "tensor is NULL"));
  CHECK(refuses(chorus_gather(group, nullptr, &in_place, nullptr, error.get()), error, "input is NULL"));
  auto options = options_of();
  options.root = 5;
  CHECK(refuses(chorus_broadcast(group, &in_place, &options, error.get()), error, "root 5 in a group of 2"));
  options.root = 0;
  options.algorithm = "rinf";
  CHECK(refuses(chorus_broadcast(group, &in_place, &options, error.get()), error, "rinf"));
  options.algorithm = nullptr;
  options.reduce = CHORUS_BXOR + 1;
  CHECK(refuses(chorus_all_reduce(group, nullptr, &in_place, &options, error.get()), error, "no reduction"));
  auto const late = options_of(-5);
  CHECK(refuses(chorus_barrier(group, &late, error.get()), error, "timeout of -5 ms"));
  std::uint64_t begin = 0, length = 0;
  CHECK(refuses(chorus_group_block(group, 2, 10, &begin, &length, error.get()), error, "rank 2 in a group of 2"));
  REQUIRE(chorus_group_block(group, 1, 11, &begin, &length, nullptr) == CHORUS_OK);
  CHECK(begin + length == 11);

  pair.both([](chorus_group_t* joined, std::uint32_t rank) {
    auto x = of_rank(rank);
    auto const whole = tensor(x);
    must(chorus_all_reduce(joined, nullptr, &whole, nullptr, nullptr) == CHORUS_OK, "all_reduce");
    MUST(x == (Numbers{11, 22, 33, 44}));
  });
}

TEST_CASE("members that call different things are told so, and the epoch is over for both") {
  Pair pair;
  pair.both([](chorus_group_t* group, std::uint32_t rank) {
    auto x = of_rank(rank);
    x.resize(rank == 0 ? 4 : 2);
    auto const whole = tensor(x);
    auto const error = new_error();
    auto const status = chorus_all_reduce(group, nullptr, &whole, nullptr, error.get());
    must(status == CHORUS_PLAN_MISMATCH || status == CHORUS_ABORTED, chorus_error_text(error.get()));
    must(chorus_barrier(group, nullptr, nullptr) == status, "later calls say the same");
  });
}

TEST_CASE("the member that never calls is named by its rank") {
  Pair pair;
  auto const error = new_error();
  REQUIRE(chorus_error_ranks(error.get(), nullptr) == 0);
  pair.both([](chorus_group_t* group, std::uint32_t) {
    must(chorus_barrier(group, nullptr, nullptr) == CHORUS_OK, "barrier");
  });
  auto const options = options_of(50);
  CHECK(chorus_barrier(pair.groups[0].get(), &options, error.get()) == CHORUS_DEADLINE_EXCEEDED);
  std::uint32_t const* ranks = nullptr;
  REQUIRE(chorus_error_ranks(error.get(), &ranks) == 1);
  CHECK(ranks[0] == 1);
  CHECK(mentions(chorus_error_text(error.get()), "w1"));
  chorus_worker_info_t info{sizeof(info), nullptr, nullptr};
  CHECK(chorus_worker_describe(pair.workers[0].get(), &info, error.get()) == CHORUS_OK);
  CHECK(chorus_error_status(error.get()) == CHORUS_OK);
  CHECK(chorus_error_ranks(error.get(), &ranks) == 0);
}

TEST_CASE("calls after a stop fail, also those that were under way, and what was handed out stays valid") {
  Pair pair;
  auto const error = new_error();
  chorus_memory_t* allocated = nullptr;
  REQUIRE(chorus_memory_allocate(pair.workers[0].get(), 4096, &allocated, nullptr) == CHORUS_OK);
  Block const block(allocated);
  chorus_request_t* begun = nullptr;
  REQUIRE(chorus_barrier_async(pair.groups[0].get(), nullptr, &begun, nullptr) == CHORUS_OK);
  Request const request(begun);

  CHECK(chorus_worker_stop(pair.workers[0].get(), error.get()) == CHORUS_OK);
  CHECK(chorus_worker_stop(pair.workers[0].get(), error.get()) == CHORUS_OK);
  CHECK(chorus_request_wait(begun, nullptr) == CHORUS_ABORTED);
  CHECK(chorus_barrier(pair.groups[0].get(), nullptr, nullptr) == CHORUS_ABORTED);
  chorus_group_t* group = nullptr;
  CHECK(chorus_worker_join(pair.workers[0].get(), "g", 1000, &group, error.get()) == CHORUS_STOPPED);
  CHECK(mentions(chorus_error_text(error.get()), "w0"));
  chorus_memory_t* more = nullptr;
  CHECK(chorus_memory_allocate(pair.workers[0].get(), 64, &more, nullptr) == CHORUS_STOPPED);
  chorus_worker_info_t info{sizeof(info), nullptr, nullptr};
  CHECK(chorus_worker_describe(pair.workers[0].get(), &info, nullptr) == CHORUS_OK);
  CHECK(std::string(info.id) == "w0");
  REQUIRE(chorus_memory_bytes(allocated) == 4096);
  static_cast<unsigned char*>(chorus_memory_data(allocated))[4095] = 1;
}

TEST_CASE("memory is allocated where the others see it, and registered where it lies") {
  auto const error = new_error();
  auto const alone = start("alone", nullptr);
  chorus_memory_t* memory = nullptr;
  REQUIRE(chorus_memory_allocate(alone.get(), 1000, &memory, error.get()) == CHORUS_OK);
  Block const block(memory);
  CHECK(reinterpret_cast<std::uintptr_t>(chorus_memory_data(memory)) % 64 == 0);
  chorus_memory_t* too_much = nullptr;
  CHECK(chorus_memory_allocate(alone.get(), std::size_t{1} << 40, &too_much, error.get()) == CHORUS_OUT_OF_MEMORY);
  CHECK(too_much == nullptr);

  std::size_t const bytes = 2 << 20;
  std::unique_ptr<unsigned char, decltype(&std::free)> const own(
      static_cast<unsigned char*>(std::aligned_alloc(bytes, bytes)), &std::free);
  own.get()[bytes - 1] = 42;
  chorus_memory_t* registered = nullptr;
  REQUIRE(chorus_memory_register(alone.get(), own.get(), bytes, &registered, error.get()) == CHORUS_OK);
  CHECK(chorus_memory_data(registered) == own.get());
  CHECK(own.get()[bytes - 1] == 42);
  chorus_memory_free(registered);
  CHECK(own.get()[bytes - 1] == 42);
  CHECK(refuses(chorus_memory_register(alone.get(), own.get() + 1, bytes / 2, &registered, error.get()), error, ""));
  CHECK(registered == nullptr);

  auto const by_itself = start("own", nullptr, false);
  CHECK(chorus_memory_register(by_itself.get(), own.get(), bytes, &registered, error.get()) == CHORUS_NOT_SHARED);
}

TEST_CASE("a worker that cannot start says why") {
  auto const error = new_error();
  auto const refused = [&](auto const& change) {
    chorus_worker_options_t options{};
    options.size = sizeof(options);
    options.log_level = "off";
    change(options);
    chorus_worker_t* worker = nullptr;
    auto const status = chorus_worker_start(&options, &worker, error.get());
    CHECK(worker == nullptr);
    return status;
  };
  CHECK(refused([](auto& o) { o.size = 3; }) == CHORUS_BAD_ARGUMENT);
  CHECK(mentions(chorus_error_text(error.get()), "chorus_worker_options_t: size is 3"));
  CHECK(refused([](auto& o) { o.id = "no/name"; }) == CHORUS_BAD_ARGUMENT);
  CHECK(refused([](auto& o) { o.log_level = "loud"; }) == CHORUS_BAD_ARGUMENT);
  CHECK(refused([](auto& o) { o.host = "192.0.2.1"; }) != CHORUS_OK);
  CHECK(refused([](auto& o) { o.token_file = "/nowhere/token"; }) == CHORUS_BAD_SECURITY);
}

TEST_CASE("the version is that of the header, and features have names") {
  CHECK(std::string(chorus_version()) == std::to_string(CHORUS_VERSION_MAJOR) + "." +
                                             std::to_string(CHORUS_VERSION_MINOR) + "." +
                                             std::to_string(CHORUS_VERSION_PATCH));
  CHECK(chorus_has_feature("shared_memory") == 1);
  CHECK(chorus_has_feature("tls") == 1);
  CHECK(chorus_has_feature("cuda") == 0);
  CHECK(chorus_has_feature("flying") == 0);
  CHECK(chorus_has_feature(nullptr) == 0);
  CHECK(std::string(chorus_status_name(CHORUS_PEER_LOST)) == "peer_lost");
  CHECK(std::string(chorus_status_name(CHORUS_INTERNAL)) == "internal");
  CHECK(std::string(chorus_status_name(-1)) == "unknown");
  CHECK(std::string(chorus_status_name(1000)) == "unknown");
}

TEST_CASE("no exception crosses the border") {
  auto const error = new_error();
  CHECK(chorus::library::guarded(error.get(), []() -> chorus_status_t { throw std::bad_alloc(); }) ==
        CHORUS_OUT_OF_MEMORY);
  CHECK(chorus::library::guarded(error.get(), []() -> chorus_status_t { throw std::runtime_error("broken"); }) ==
        CHORUS_INTERNAL);
  CHECK(mentions(chorus_error_text(error.get()), "broken"));
  CHECK(chorus::library::guarded(nullptr, []() -> chorus_status_t { throw 5; }) == CHORUS_INTERNAL);
}
