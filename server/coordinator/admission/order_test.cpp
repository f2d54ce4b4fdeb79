// Requests that can be refused without asking a worker, for launches and for dry runs.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "collectives/algorithms/catalogue.hpp"
#include "server/coordinator/admission/order.hpp"
#include "server/coordinator/admission/plan_preview.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using http::ProblemCode;

namespace {

using Expected = std::pair<ProblemCode, std::string>;

api::CollectiveRequest good() {
  api::CollectiveRequest request;
  request.group = "g";
  request.tensor = "grad/0";
  return request;
}

bool admitted(auto change) {
  auto request = good();
  change(request);
  return check_order(request).has_value();
}

Expected refused(auto change) {
  auto request = good();
  change(request);
  auto const order = check_order(request);
  REQUIRE(order.has_error());
  REQUIRE(order.error().errors.size() == 1);
  return {order.error().code, order.error().errors.front().pointer};
}

Expected refused_plan(auto change) {
  api::PlanRequest request;
  request.ranks = 4;
  request.bytes = 64;
  change(request);
  auto const problem = preview_plan(request, std::nullopt, model::Constants::defaults()).error();
  REQUIRE_FALSE(problem.errors.empty());
  return {problem.code, problem.errors.front().pointer};
}

}  // namespace

TEST_CASE("an order keeps the given choices and leaves the rest open") {
  auto request = good();
  request.reduce = "avg";
  request.algorithm = "tree";
  request.arity = 3;
  request.in_place = true;
  auto const order = check_order(request).value();
  CHECK(order.reduce == ReduceOp::avg);
  CHECK(order.wish.algorithm == "tree");
  CHECK(order.wish.arity == 3u);
  CHECK_FALSE(order.wish.root.has_value());
  CHECK(order.wish.in_place);
}

TEST_CASE("a misspelt on_failure gets the nearest value") {
  auto request = good();
  request.on_failure = "fial";
  CHECK(check_order(request).error().errors.front().detail == "unknown on_failure 'fial'; did you mean 'fail'?");
}

TEST_CASE("an invalid order has the pointer of its field") {
  using R = api::CollectiveRequest;
  CHECK(refused([](R& r) { r.group = ""; }) == Expected{ProblemCode::invalid_field, "/group"});
  CHECK(refused([](R& r) { r.tensor = ""; }) == Expected{ProblemCode::invalid_field, "/tensor"});
  CHECK(refused([](R& r) { r.tensor = "a/../b"; }) == Expected{ProblemCode::invalid_field, "/tensor"});
  CHECK(refused([](R& r) { r.op = "all_redcue"; }) == Expected{ProblemCode::invalid_field, "/op"});
  CHECK(refused([](R& r) { r.op = "gather", r.algorithm = "ring"; }) ==
        Expected{ProblemCode::invalid_field, "/algorithm"});
  CHECK(refused([](R& r) { r.op = "barrier"; }) == Expected{ProblemCode::invalid_field, "/tensor"});
  CHECK(refused([](R& r) { r.output = "a//b"; }) == Expected{ProblemCode::invalid_field, "/output"});
  CHECK(refused([](R& r) { r.algorithm_shape = {2, 2}; }) == Expected{ProblemCode::invalid_field, "/algorithm_shape"});
  CHECK(refused([](R& r) { r.reduce = "mean"; }) == Expected{ProblemCode::invalid_field, "/reduce"});
  CHECK(refused([](R& r) { r.algorithm = "rign"; }) == Expected{ProblemCode::invalid_field, "/algorithm"});
  CHECK(refused([](R& r) { r.arity = 0; }) == Expected{ProblemCode::invalid_field, "/arity"});
  CHECK(refused([](R& r) { r.arity = 1, r.algorithm = "bcube"; }) == Expected{ProblemCode::invalid_field, "/arity"});
  CHECK(refused([](R& r) { r.timeout_ms = 0; }) == Expected{ProblemCode::invalid_field, "/timeout_ms"});
  static constexpr std::uint64_t day_ms = 24 * 3600 * 1000;
  CHECK(admitted([](R& r) { r.timeout_ms = day_ms; }));
  CHECK(refused([](R& r) { r.timeout_ms = day_ms + 1; }) == Expected{ProblemCode::invalid_field, "/timeout_ms"});
  CHECK(refused([](R& r) { r.timeout_ms = ~std::uint64_t{0}; }) == Expected{ProblemCode::invalid_field, "/timeout_ms"});
  CHECK(refused([](R& r) { r.schedule.segment_bytes = 4095; }) ==
        Expected{ProblemCode::invalid_field, "/schedule/segment_bytes"});
  CHECK(refused([](R& r) { r.schedule.window = 65; }) == Expected{ProblemCode::invalid_field, "/schedule/window"});
  CHECK(refused([](R& r) { r.reproducible = true, r.algorithm = "ring"; }) ==
        Expected{ProblemCode::invalid_field, "/reproducible"});
}

TEST_CASE("reproducible admits the algorithms that reduce in worker order, and refuses the others with their names") {
  auto request = good();
  request.reproducible = true;
  CHECK(check_order(request).value().wish.reproducible);
  request.algorithm = "mesh";
  CHECK(check_order(request).has_value());
  request.algorithm = "ring";
  CHECK(check_order(request).error().detail.find("mesh, centralized, allpairs do") != std::string::npos);
}

TEST_CASE("reproducible has the same condition within a worker, where its tensors are reduced") {
  auto request = good();
  request.reproducible = true;
  request.local_algorithm = "centralized";
  CHECK(check_order(request).has_value());
  for (auto const* other : {"tree", "chain", "binomial", "double_tree", "recursive_halving", "ring"}) {
    request.local_algorithm = other;
    auto const refused = check_order(request);
    CHECK(refused.error().errors.front().pointer == "/local_algorithm");
    CHECK(refused.error().detail.ends_with("; auto, centralized do"));
  }
  request.op = "broadcast";
  request.local_algorithm = "tree";
  CHECK(check_order(request).has_value());
}

TEST_CASE("a barrier has no tensor, and needs none") {
  auto request = good();
  request.op = "barrier";
  request.tensor = "";
  CHECK(check_order(request).value().wish.op == Op::barrier);
}

TEST_CASE("epoch and root are compared with the group") {
  api::Group group;
  group.name = "g";
  group.epoch = 3;
  group.members.resize(4);
  auto request = good();
  CHECK_FALSE(check_order_for(request, check_order(good()).value(), group).has_value());
  request.epoch = 3;
  request.root = 3;
  CHECK_FALSE(check_order_for(request, check_order(good()).value(), group).has_value());
  request.root = 4;
  CHECK(check_order_for(request, check_order(good()).value(), group)->errors.front().pointer == "/root");
  request.epoch = 2;
  CHECK(check_order_for(request, check_order(good()).value(), group)->code == ProblemCode::epoch_fenced);
  CHECK(check_order_for(request, check_order(good()).value(), group)->detail ==
        "epoch 2 was asked for and group 'g' stands at epoch 3");
}

TEST_CASE("a dry run shows the cost of every algorithm of the operation") {
  for (auto const op : all_ops) {
    api::PlanRequest request;
    request.op = name(op);
    request.ranks = 6;
    request.bytes = 1 << 20;
    auto const answer = preview_plan(request, std::nullopt, model::Constants::defaults()).value();
    std::set<std::string> considered, existing;
    for (auto const& candidate : answer.considered) considered.insert(candidate.algorithm);
    for (auto const* algorithm : algorithms::all_for(op))
      if (algorithm->coded_from == nullptr) existing.emplace(algorithm->name);  // others are for compressed ones
    CHECK(considered == existing);
  }
}

TEST_CASE("a dry run is proved, explained and drawn") {
  api::PlanRequest request;
  request.ranks = 5;
  request.bytes = 1 << 20;
  for (auto const* algorithm : {"auto", "ring", "tree", "centralized"}) {
    request.algorithm = algorithm;
    auto const answer = preview_plan(request, std::nullopt, model::Constants::defaults()).value();
    CAPTURE(answer.verification);
    CHECK(answer.verified);
    CHECK_FALSE(answer.reason.empty());
    CHECK(answer.considered.size() >= algorithms::all_for(Op::all_reduce).size());
    CHECK(answer.predicted_seconds > 0);
    CHECK(answer.lower_bound.bytes_per_rank == 1677722);
    std::size_t sends = 0, receives = 0;
    for (auto const& round : answer.rounds)
      for (auto const& move : round) {
        if (move.op == "send") ++sends;
        if (move.op == "recv" || move.op == "recv_reduce") ++receives;
        CHECK(move.rank < 5);
      }
    CHECK(sends > 0);
    CHECK(sends == receives);
  }
}

TEST_CASE("a compressed launch that no format, operation, reduction or algorithm admits is refused at /compression") {
  using R = api::CollectiveRequest;
  Expected const expected{ProblemCode::invalid_field, "/compression"};
  CHECK(refused([](R& r) { r.compression = api::Compression{"int9", {}}; }) == expected);
  CHECK(refused([](R& r) { r.compression = api::Compression{"int8", {}}, r.op = "gather"; }) == expected);
  CHECK(refused([](R& r) { r.compression = api::Compression{"int8", {}}, r.reduce = "max"; }) == expected);
  CHECK(refused([](R& r) { r.compression = api::Compression{"int8", {}}, r.algorithm = "ring"; }) == expected);
  Expected const no_feedback{ProblemCode::invalid_field, "/error_feedback"};
  CHECK(refused([](R& r) { r.error_feedback = true; }) == no_feedback);
  CHECK(refused([](R& r) {
          r.compression = api::Compression{"int8", "rack"}, r.error_feedback = true;
        }) == no_feedback);
  auto request = good();
  request.compression = api::Compression{"int8", {}};
  CHECK(check_order(request).value().compression == WireFormat::int8);
  CHECK(check_order(request).value().wish.reproducible);
  request.op = "all_gather";
  request.algorithm = "ring";
  CHECK(check_order(request).has_value());
}

TEST_CASE("a launch with compression auto allows formats by name, and leaves the decision open") {
  using R = api::CollectiveRequest;
  auto request = good();
  request.compression = api::Compression{"auto", {}};
  auto const alone = check_order(request).value();
  CHECK(alone.compression == CompressionWish::automatic({WireFormat::bf16}));
  CHECK_FALSE(alone.wish.compression.has_value());
  CHECK_FALSE(alone.wish.reproducible);
  request.compression = api::Compression{"auto", "rack", {{"int8", "bf16"}}};
  CHECK(check_order(request).value().compression ==
        CompressionWish::automatic({WireFormat::bf16, WireFormat::int8}, Level::rack));
  Expected const expected{ProblemCode::invalid_field, "/compression"};
  using Names = std::vector<std::string>;
  CHECK(refused([](R& r) { r.compression = api::Compression{"auto", {}, Names{}}; }) == expected);
  CHECK(refused([](R& r) { r.compression = api::Compression{"auto", {}, Names{"int9"}}; }) == expected);
  CHECK(refused([](R& r) { r.compression = api::Compression{"int8", {}, Names{"int8"}}; }) == expected);
  CHECK(refused([](R& r) { r.compression = api::Compression{"auto", {}}, r.reduce = "max"; }) == expected);
  CHECK(refused([](R& r) { r.compression = api::Compression{"auto", {}}, r.op = "gather"; }) == expected);
  CHECK(refused([](R& r) { r.compression = api::Compression{"auto", {}}, r.algorithm = "ring"; }) == expected);
  CHECK(refused([](R& r) {
          r.compression = api::Compression{"auto", {}}, r.error_feedback = true;
        }) == Expected{ProblemCode::invalid_field, "/error_feedback"});
}

TEST_CASE("a dry run with compression auto shows every alternative, and takes the fastest") {
  api::PlanRequest request;
  request.topology = "flat:4;rack=25us,1Gbit/s";
  request.bytes = 4 * 252 * 4 * 1000;
  request.compression = api::Compression{"auto", {}, std::vector<std::string>{"bf16", "int8"}};
  auto const plan = [&] { return preview_plan(request, std::nullopt, model::Constants::defaults()).value(); };
  auto const slow = plan();
  CHECK(slow.wire_format == "int8");
  CHECK(slow.wire_bytes == 4 * 256 * 1000);
  REQUIRE(slow.considered_formats->size() == 3);
  CHECK(slow.considered_formats->at(0).format == "int8");
  CHECK(slow.considered_formats->at(0).predicted_seconds == slow.predicted_seconds);
  CHECK(slow.considered_formats->at(1).format == "bf16");
  CHECK_FALSE(slow.considered_formats->at(2).format.has_value());
  CHECK(slow.considered_formats->at(2).predicted_seconds > slow.considered_formats->at(1).predicted_seconds);
  CHECK(slow.reason.find("codes of int8: ") == 0);
  CHECK(slow.reason.find("; elements: ") != std::string::npos);

  // Named, the same format is predicted to take as long.
  request.compression = api::Compression{"int8", {}};
  CHECK(plan().predicted_seconds == slow.predicted_seconds);
  CHECK(plan().wire_format == "int8");
  CHECK_FALSE(plan().considered_formats.has_value());

  request.compression = api::Compression{"auto", {}};
  CHECK(plan().wire_format == "bf16");
  request.topology = "hosts:1x4";
  auto const shared = plan();
  CHECK_FALSE(shared.wire_format.has_value());
  CHECK_FALSE(shared.wire_bytes.has_value());
  CHECK(shared.considered_formats->size() == 1);
  CHECK(shared.reason.find("codes are not considered: all ranks are on one host") != std::string::npos);
}

TEST_CASE("a launch with codes between groups is not reproducible, and takes neither a shape nor an unknown level") {
  using R = api::CollectiveRequest;
  auto const between = [](char const* level) { return api::Compression{"int8", level}; };
  auto request = good();
  request.compression = between("rack");
  CHECK(check_order(request).value().compression == Compression(WireFormat::int8, Level::rack));
  CHECK(check_order(request).value().wish.compression == Compression(WireFormat::int8, Level::rack));
  CHECK_FALSE(check_order(request).value().wish.reproducible);
  Expected const expected{ProblemCode::invalid_field, "/compression"};
  CHECK(refused([&](R& r) { r.compression = between("world"); }) == expected);
  CHECK(refused([&](R& r) { r.compression = between("rack"), r.op = "gather"; }) == expected);
  CHECK(refused([&](R& r) { r.compression = between("rack"), r.reduce = "max"; }) == expected);
  CHECK(refused([&](R& r) { r.compression = between("rack"), r.reproducible = true; }) == expected);
  CHECK(refused([&](R& r) {
          r.compression = between("rack"), r.algorithm = "grouped_allpairs", r.algorithm_shape = {{2, 2}};
        }) == Expected{ProblemCode::invalid_field, "/algorithm_shape"});
}

TEST_CASE("a dry run with codes between racks says what crosses, and inside one rack nothing is compressed") {
  api::PlanRequest request;
  request.topology = "racks:2x4x1";
  request.bytes = 8 * 252 * 4 * 1000;
  request.compression = api::Compression{"int8", "rack"};
  auto const plan = [&] { return preview_plan(request, std::nullopt, model::Constants::defaults()); };
  auto const codes = plan().value();
  CHECK(codes.algorithm == "grouped_allpairs");
  CHECK(codes.algorithm_shape == std::vector<std::uint32_t>{4, 4});
  CHECK(codes.verified);
  CHECK(codes.wire_bytes == 8 * 256 * 1000);
  CHECK(codes.compression_ratio == 3.9375);
  request.algorithm = "ring";
  CHECK(plan().error().detail.find("ring sends no codes between groups; grouped_allpairs does") != std::string::npos);
  CHECK(plan().error().errors.front().pointer == "/algorithm");
  request.algorithm = "auto";
  for (auto const* op : {"reduce", "broadcast"}) {
    request.op = op;
    CHECK(plan().error().detail.find("all_reduce has one") != std::string::npos);
    CHECK(plan().error().errors.front().pointer == "/compression");
  }
  request.op = "all_reduce";
  request.topology = "hosts:8x1";
  auto const plain = plan().value();
  CHECK(plain.algorithm != "grouped_allpairs");
  CHECK_FALSE(plain.wire_bytes);
}

TEST_CASE("a compressed dry run counts codes, those of each block by themselves") {
  api::PlanRequest request;
  request.ranks = 4;
  request.bytes = 4 * 252 * 4;
  request.compression = api::Compression{"int8", {}};
  auto const sum = preview_plan(request, std::nullopt, model::Constants::defaults()).value();
  CHECK(sum.wire_bytes == 4 * 256);
  CHECK(sum.compression_ratio == 3.9375);
  request.op = "all_gather";
  request.bytes = 4 * 4;
  auto const whole = preview_plan(request, std::nullopt, model::Constants::defaults()).value();
  CHECK(whole.wire_bytes == 4 * 256);
  CHECK(whole.lower_bound.bytes_per_rank == 3 * 256);
}

TEST_CASE("a dry run for more ranks than are proved says so") {
  api::PlanRequest request;
  request.ranks = 65;
  request.bytes = 64;
  auto const answer = preview_plan(request, std::nullopt, model::Constants::defaults()).value();
  CHECK_FALSE(answer.verified);
  CHECK(answer.rounds.empty());
  CHECK(answer.verification == "neither verified nor drawn here above 64 ranks; chorus verify proves it");
}

TEST_CASE("a dry run for 1,000 ranks chooses among the available algorithms, on many hosts as on one") {
  api::PlanRequest request;
  request.ranks = 1000;
  request.bytes = 1 << 20;
  auto const on_one = preview_plan(request, std::nullopt, model::Constants::defaults()).value();
  CHECK(on_one.considered.size() > 10);
  request.topology = "hosts:125x8";
  auto const on_hosts = preview_plan(request, std::nullopt, model::Constants::defaults()).value();
  CHECK(on_hosts.predicted_seconds > 0);
  CHECK(on_hosts.reason != on_one.reason);
}

TEST_CASE("a dry run for a group uses the group's localities, and takes no others") {
  api::PlanRequest request;
  request.group = "g";
  request.bytes = 64;
  Standing const members{std::vector<Locality>(3)};
  CHECK(preview_plan(request, members, model::Constants::defaults()).value().verified);
  request.topology = "flat:3";
  CHECK(preview_plan(request, members, model::Constants::defaults()).error().errors.front().pointer == "/group");
}

TEST_CASE("an invalid dry run has the pointer of its field") {
  using R = api::PlanRequest;
  auto const localities = [](std::vector<std::string> texts) {
    return [texts](R& r) { r.ranks.reset(), r.localities = texts; };
  };
  CHECK(refused_plan([](R& r) { r.ranks = 0; }) == Expected{ProblemCode::invalid_field, "/ranks"});
  CHECK(refused_plan([](R& r) { r.ranks.reset(); }) == Expected{ProblemCode::invalid_field, "/ranks"});
  CHECK(refused_plan([](R& r) { r.ranks = 4294967295; }) == Expected{ProblemCode::invalid_field, "/ranks"});
  CHECK(refused_plan([](R& r) { r.localities = std::vector<std::string>{"host=a"}; }) ==
        Expected{ProblemCode::invalid_field, "/localities"});
  CHECK(refused_plan(localities({"host=a", "hots=b"})) == Expected{ProblemCode::invalid_field, "/localities/1"});
  CHECK(refused_plan(localities({})) == Expected{ProblemCode::invalid_field, "/localities"});
  CHECK(refused_plan([](R& r) { r.topology = "flat:5"; }) == Expected{ProblemCode::invalid_field, "/topology"});
  CHECK(refused_plan([](R& r) { r.topology = "flat:0"; }) == Expected{ProblemCode::invalid_field, "/topology"});
  CHECK(refused_plan([](R& r) { r.links.emplace(); }) ==
        Expected{ProblemCode::invalid_field, "/links/bandwidth_gbyte_per_s"});
  CHECK(refused_plan([](R& r) { r.bytes = 65; }) == Expected{ProblemCode::invalid_field, "/bytes"});
  CHECK(refused_plan([](R& r) {
          r.compression = api::Compression{"int9", {}};
        }) == Expected{ProblemCode::invalid_field, "/compression"});
  CHECK(refused_plan([](R& r) {
          r.compression = api::Compression{"int8", {}}, r.dtype = "i32";
        }) == Expected{ProblemCode::invalid_field, "/compression"});
  CHECK(refused_plan([](R& r) {
          r.compression = api::Compression{"bf16", {}}, r.dtype = "f16";
        }) == Expected{ProblemCode::invalid_field, "/compression"});
  CHECK(refused_plan([](R& r) { r.dtype = "f33"; }) == Expected{ProblemCode::invalid_field, "/dtype"});
  CHECK(refused_plan([](R& r) { r.arity = 0; }) == Expected{ProblemCode::invalid_field, "/arity"});
  CHECK(refused_plan([](R& r) { r.arity = 1, r.algorithm = "bcube"; }) ==
        Expected{ProblemCode::invalid_field, "/arity"});
  CHECK(refused_plan([](R& r) {
          r.algorithm = "torus_2d", r.algorithm_shape = {3, 3};
        }) == Expected{ProblemCode::invalid_field, "/algorithm_shape"});
  CHECK(refused_plan([](R& r) { r.root = 4; }) == Expected{ProblemCode::invalid_field, "/root"});
  CHECK(refused_plan([](R& r) { r.op = "gather", r.algorithm = "bcube"; }) ==
        Expected{ProblemCode::invalid_field, "/algorithm"});
}
