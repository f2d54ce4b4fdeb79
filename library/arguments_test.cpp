// Structs of programs that were compiled with another header than this library.
#include "library/arguments.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstddef>

#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::library;
using chorus::testing::mentions;

namespace {

// What a later header may make of the options of a call.
struct LaterOptions {
  chorus_collective_options_t known;
  std::uint64_t added;
};

chorus_collective_options_t const* as_known(LaterOptions const& options) { return &options.known; }

}  // namespace

TEST_CASE("the options of a program that knows no more than this library are taken as they are") {
  std::array<std::uint64_t, 2> const counts{3, 4};
  chorus_collective_options_t given{};
  given.size = sizeof(given);
  given.reduce = CHORUS_MAX;
  given.root = 7;
  given.algorithm = "ring";
  given.counts = counts.data();
  given.counts_length = counts.size();
  given.timeout_ms = 250;
  auto const options = to_options(&given);
  REQUIRE(options.has_value());
  CHECK(options->reduce == ReduceOp::max);
  CHECK(options->root == 7);
  CHECK(options->algorithm == "ring");
  CHECK(options->counts == std::vector<std::uint64_t>{3, 4});
  CHECK(options->receive_counts.empty());
  CHECK(!options->arity);
  CHECK(options->timeout == std::chrono::milliseconds(250));
  CHECK(!options->compression);
}

TEST_CASE("a compression is a format by its name; another name is refused, with the nearest one") {
  chorus_collective_options_t given{};
  given.size = sizeof(given);
  given.compression = "int8";
  given.error_feedback = "grad";
  CHECK(to_options(&given)->compression == WireFormat::int8);
  CHECK(to_options(&given)->error_feedback == "grad");
  given.compression = "int9";
  auto const refused = to_options(&given);
  REQUIRE(refused.has_error());
  CHECK(refused.error().detail.find("did you mean 'int8'?") != std::string::npos);
}

TEST_CASE("codes between groups have a level by its name, and need a compression") {
  chorus_collective_options_t given{};
  given.size = sizeof(given);
  given.compression = "bf16";
  given.between = "rack";
  CHECK(to_options(&given)->compression == Compression(WireFormat::bf16, Level::rack));
  given.between = "world";
  CHECK(to_options(&given).error().detail.find("there are host, rack, zone, region") != std::string::npos);
  given.compression = nullptr;
  CHECK(to_options(&given).error().detail.find("there is no compression") != std::string::npos);
}

TEST_CASE("auto has formats by their names, of which bf16 is the only one that nobody has to allow") {
  chorus_collective_options_t given{};
  given.size = sizeof(given);
  given.compression = "auto";
  CHECK(to_options(&given)->compression == CompressionWish::automatic({WireFormat::bf16}));
  given.allow = "int8,bf16";
  CHECK(to_options(&given)->compression == CompressionWish::automatic({WireFormat::bf16, WireFormat::int8}));
  given.between = "rack";
  CHECK(to_options(&given)->compression ==
        CompressionWish::automatic({WireFormat::bf16, WireFormat::int8}, Level::rack));
  given.allow = "int8,";
  CHECK(to_options(&given).error().detail.find("there are bf16, f16, int8, fp8_e4m3") != std::string::npos);
  given.allow = "int8";
  given.compression = "bf16";
  CHECK(to_options(&given).error().detail.find("allowed to 'auto', not beside a format") != std::string::npos);
  given.compression = given.between = nullptr;
  CHECK(to_options(&given).error().detail.find("allow: there is no compression") != std::string::npos);
}

TEST_CASE("the options of a program with an earlier header are taken; what lies behind them is not read") {
  chorus_collective_options_t given{};
  given.size = offsetof(chorus_collective_options_t, compression);
  given.root = 3;
  given.compression = "not of this struct";
  auto const options = to_options(&given);
  REQUIRE(options.has_value());
  CHECK(options->root == 3);
  CHECK(!options->compression);
}

TEST_CASE("what is 0 is the default, and so is a struct that is not there") {
  chorus_collective_options_t zeros{};
  zeros.size = sizeof(zeros);
  for (auto const* const given : {static_cast<chorus_collective_options_t const*>(&zeros),
                                  static_cast<chorus_collective_options_t const*>(nullptr)}) {
    auto const options = to_options(given);
    REQUIRE(options.has_value());
    CollectiveOptions const defaults;
    CHECK(options->reduce == defaults.reduce);
    CHECK(options->algorithm == defaults.algorithm);
    CHECK(options->timeout == defaults.timeout);
  }
  chorus_worker_options_t none{};
  none.size = sizeof(none);
  auto const worker = to_worker_options(&none);
  REQUIRE(worker.has_value());
  WorkerOptions const defaults;
  CHECK(worker->host == defaults.host);
  CHECK(worker->shares_memory == defaults.shares_memory);
  CHECK(worker->spin == defaults.spin);
  CHECK(worker->drain_timeout == defaults.drain_timeout);
  CHECK(worker->connections == defaults.connections);
  CHECK(worker->tensor_limit_bytes == defaults.tensor_limit_bytes);
  CHECK(worker->link_checksum == defaults.link_checksum);
  CHECK(worker->log_level == defaults.log_level);
  CHECK(!worker->security.rate_limit);
}

TEST_CASE("a later header may be used as long as nothing is asked for that this library does not know") {
  LaterOptions later{};
  later.known.size = sizeof(later);
  later.known.root = 3;
  auto const known = to_options(as_known(later));
  REQUIRE(known.has_value());
  CHECK(known->root == 3);

  later.added = 1;
  auto const unknown = to_options(as_known(later));
  REQUIRE(unknown.has_error());
  CHECK(unknown.error().code == WorkerErrc::bad_argument);
  CHECK(mentions(unknown.error().detail, "does not know"));
}

TEST_CASE("a size that no header has is refused by the name of the struct") {
  for (std::size_t const size : {std::size_t{0}, std::size_t{8}, sizeof(chorus_collective_options_t) - 1,
                                 sizeof(chorus_collective_options_t) + 100'000, SIZE_MAX}) {
    chorus_collective_options_t given{};
    given.size = size;
    auto const options = to_options(&given);
    REQUIRE(options.has_error());
    CHECK(mentions(options.error().detail, "chorus_collective_options_t: size is " + std::to_string(size)));
  }
}

TEST_CASE("a tensor that cannot be is refused by its name") {
  float value = 0;
  auto const refused = [&](void* data, std::uint64_t elements, chorus_dtype_t dtype, std::uint32_t reserved) {
    chorus_tensor_t const tensor{data, elements, dtype, reserved};
    auto const view = to_view(&tensor, "output");
    return view.has_error() ? view.error().detail : "";
  };
  CHECK(mentions(refused(&value, 1, 12, 0), "output: 12 is no dtype"));
  CHECK(mentions(refused(&value, 1, -1, 0), "output: -1 is no dtype"));
  CHECK(mentions(refused(nullptr, 5, CHORUS_F32, 0), "output: data is NULL, and there are 5 elements"));
  CHECK(mentions(refused(&value, UINT64_MAX, CHORUS_F32, 0), "more than there are addresses"));
  CHECK(mentions(refused(&value, 1, CHORUS_F32, 1), "reserved is 1"));
  CHECK(refused(&value, 1, CHORUS_F32, 0).empty());
  CHECK(refused(nullptr, 0, CHORUS_U8, 0).empty());
}

TEST_CASE("numbers of a worker's options that cannot be are refused by their names") {
  auto const refused = [](auto const& change) {
    chorus_worker_options_t options{};
    options.size = sizeof(options);
    change(options);
    auto const read = to_worker_options(&options);
    return read.has_error() ? read.error().detail : "";
  };
  CHECK(mentions(refused([](auto& o) { o.private_memory = 2; }), "private_memory is 2, not 0 or 1"));
  CHECK(mentions(refused([](auto& o) { o.spin_us = -2; }), "spin_us is -2"));
  CHECK(mentions(refused([](auto& o) { o.drain_timeout_ms = INT64_MAX; }), "drain_timeout_ms"));
  CHECK(mentions(refused([](auto& o) { o.allowed_hosts_length = 2; }), "allowed_hosts is NULL"));
  CHECK(mentions(refused([](auto& o) { o.reserved[1] = 1; }), "reserved is not 0"));
}
