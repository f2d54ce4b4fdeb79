#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "collectives/core/dtype.hpp"
#include "server/coordinator/placements/placement.hpp"

namespace chorus::coordinator {
namespace {

api::ParameterRequest request(std::vector<std::uint64_t> shape) {
  api::ParameterRequest asked;
  asked.shape = std::move(shape);
  asked.group = "g";
  return asked;
}

CheckedParameter checked(std::vector<std::uint64_t> shape, std::optional<std::uint32_t> shards = std::nullopt) {
  auto asked = request(std::move(shape));
  asked.shards = shards;
  auto const result = check_parameter("w", asked);
  REQUIRE(result.has_value());
  return result.value();
}

api::Member member(std::string const& worker, Locality locality = {}) {
  api::Member made;
  made.worker = worker;
  made.locality = std::move(locality);
  return made;
}

}  // namespace

TEST_CASE("shards cover all elements, end between rows, and differ by one row at most") {
  for (std::uint64_t const rows : {1, 2, 7, 64, 1000, 1001})
    for (std::uint64_t const width : {1, 3, 128})
      for (std::uint32_t const shards : {1, 2, 3, 7}) {
        auto const ranges = cut(checked({rows, width}, shards), 4);
        REQUIRE(ranges.size() == shards);
        std::uint64_t next = 0, least = UINT64_MAX, most = 0;
        for (auto const& range : ranges) {
          CHECK(range.begin == next);
          next = range.end;
          least = std::min(least, range.end - range.begin);
          most = std::max(most, range.end - range.begin);
          if (rows >= shards) CHECK(range.end % width == 0);
        }
        CHECK(next == rows * width);
        CHECK(most - least <= (rows >= shards ? width : 1));
      }
}

TEST_CASE("small parameters stay whole, large ones have a shard per member") {
  CHECK(cut(checked({1000}), 4).size() == 1);
  CHECK(cut(checked({200, 1000}), 4).size() == 3);
  CHECK(cut(checked({1 << 20}), 4).size() == 4);
  CHECK(cut(checked({0}), 4).size() == 1);
}

TEST_CASE("a large parameter has more shards than members, equally many for each, for members that come later") {
  CHECK(cut(checked({16 << 20}), 4).size() == 8);  // 64 MiB: shards of 8 MiB
  CHECK(cut(checked({16 << 20}), 3).size() == 9);
  CHECK(cut(checked({64 << 20}), 2).size() == 24);  // 256 MiB
  CHECK(cut(checked({64 << 20}), 7).size() == 28);
  CHECK(cut(checked({64 << 20}), 40).size() == 40);
  CHECK(cut(checked({64 << 20}, 3), 2).size() == 3);  // as requested
  auto lazy = request({1 << 30, 64});
  lazy.lazy_rows = 1000;
  CHECK(cut(check_parameter("w", lazy).value(), 4).size() == 4);
}

namespace {

// The numbers of shards of a large parameter on members w0, w1, ...: placed on some members, then moved by the rules of
// the directory.
class Spread {
 public:
  explicit Spread(std::size_t members) {
    set(members);
    owners_.resize(cut(checked({64 << 20}), members).size());
    std::vector<std::string> used;
    for (auto& owner : owners_) {
      if (used.size() >= members) used.clear();
      owner = least_loaded(members_, load_, used).worker;
      used.push_back(owner);
      ++load_[owner];
    }
  }
  void grow_to(std::size_t members) {
    set(members);
    for (auto& owner : owners_) {
      auto const* better = pick_better_owner(members_, member(owner), "", 1, load_);
      if (better == nullptr) continue;
      --load_[owner];
      ++load_[better->worker];
      owner = better->worker;
    }
  }
  // Shards of the busiest member in percent of an equal share.
  [[nodiscard]] double busiest_percent() const {
    auto const most = std::ranges::max_element(load_, {}, &Load::value_type::second)->second;
    return 100.0 * static_cast<double>(most * members_.size()) / static_cast<double>(owners_.size());
  }

 private:
  void set(std::size_t members) {
    members_.clear();
    for (std::size_t i = 0; i < members; ++i) members_.push_back(member("w" + std::to_string(i)));
  }

  std::vector<api::Member> members_;
  Load load_;
  std::vector<std::string> owners_;
};

}  // namespace

TEST_CASE("a group that grows from any number of members to any other, up to eight, stays balanced") {
  for (std::size_t from = 1; from <= 8; ++from)
    for (std::size_t to = from; to <= 8; ++to) {
      Spread at_once(from), one_by_one(from);
      at_once.grow_to(to);
      for (std::size_t members = from; members <= to; ++members) one_by_one.grow_to(members);
      CAPTURE(from);
      CAPTURE(to);
      CHECK(at_once.busiest_percent() <= 129);
      CHECK(one_by_one.busiest_percent() == at_once.busiest_percent());
      MESSAGE(from << " to " << to << ": " << at_once.busiest_percent() << " %");
    }
}

TEST_CASE("owners are the members with the least load") {
  std::vector const members{member("a"), member("b"), member("c")};
  Load const load{{"a", 100}, {"b", 10}};
  CHECK(least_loaded(members, load, {}).worker == "c");
  CHECK(least_loaded(members, load, {"c"}).worker == "b");
  CHECK(least_loaded(members, load, {"a", "b", "c"}).worker == "c");
}

TEST_CASE("a backup is as far away as possible, then on the member with the least load") {
  auto const owner = member("a", {"r", "z0", "k0", "h0"});
  auto const same_host = member("b", {"r", "z0", "k0", "h0"}), same_rack = member("c", {"r", "z0", "k0", "h1"});
  auto const far = member("d", {"r", "z1", "k1", "h2"}), as_far = member("e", {"r", "z1", "k1", "h3"});
  CHECK(pick_backup({owner}, owner, {}) == nullptr);
  CHECK(pick_backup({owner, same_host}, owner, {})->worker == "b");
  CHECK(pick_backup({owner, same_host, same_rack}, owner, {{"c", 100}})->worker == "c");
  CHECK(pick_backup({owner, same_rack, far, as_far}, owner, {{"d", 1}})->worker == "e");
}

TEST_CASE("a shard moves only if the busier worker gets less busy") {
  auto const a = member("a"), b = member("b"), c = member("c");
  Load const load{{"a", 30}, {"b", 10}};
  CHECK(pick_better_owner({a, b, c}, a, "", 10, load)->worker == "c");
  CHECK(pick_better_owner({a, b, c}, a, "c", 10, load)->worker == "b");
  CHECK(pick_better_owner({a, b}, a, "", 20, load) == nullptr);
  CHECK(pick_better_owner({a, b}, a, "b", 10, load) == nullptr);
  CHECK(pick_better_owner({a}, a, "", 10, load) == nullptr);
}

TEST_CASE("every wrong field is named") {
  auto asked = request({4, 4});
  asked.dtype = "f31";
  asked.staleness = -7;
  asked.reduce = "max";
  asked.replicas = 3;
  asked.nonfinite = "maybe";
  asked.shards = 0;
  asked.clients = std::vector<std::string>{"a", "a"};
  asked.optimizer.name = "magic";
  asked.initializer.name = "ones";
  auto const refused = check_parameter("w", asked);
  REQUIRE(refused.has_error());
  std::vector<std::string> pointers;
  for (auto const& error : refused.error().errors) pointers.push_back(error.pointer);
  for (auto const* const pointer : {"/dtype", "/staleness", "/reduce", "/replicas", "/nonfinite", "/shards", "/clients",
                                    "/optimizer/name", "/initializer/name"})
    CHECK_MESSAGE(std::ranges::find(pointers, pointer) != pointers.end(), pointer);
  CHECK(check_parameter("a//b", request({1})).has_error());
  CHECK(check_parameter("w", request(std::vector<std::uint64_t>(33, 1))).has_error());
}

TEST_CASE("a misspelt name gets the nearest name, a name like none gets all of them") {
  auto const refusal = [](auto const& change) {
    auto asked = request({4});
    change(asked);
    return check_parameter("w", asked).error().errors.at(0).detail;
  };
  CHECK(refusal([](auto& asked) { asked.reduce = "som"; }) == "unknown reduce 'som'; did you mean 'sum'?");
  CHECK(refusal([](auto& asked) { asked.nonfinite = "rejct"; }) == "unknown nonfinite 'rejct'; did you mean 'reject'?");
  CHECK(refusal([](auto& asked) { asked.durability = "lgo"; }) == "unknown durability 'lgo'; did you mean 'log'?");
  CHECK(refusal([](auto& asked) { asked.device = "cudda"; }) == "unknown device 'cudda'; did you mean 'cuda'?");
  CHECK(refusal([](auto& asked) { asked.device = "abacus"; }) == "unknown device 'abacus'; there are cpu, cuda");
}

TEST_CASE("averages need floats, because integers would wrap in the sum") {
  for (auto const dtype : all_dtypes) {
    CAPTURE(name(dtype));
    bool const is_float = dtype < Dtype::i64;
    auto asked = request({4});
    asked.dtype = name(dtype);
    CHECK(check_parameter("w", asked).has_value());
    asked.reduce = "avg";
    auto const answer = check_parameter("w", asked);
    CHECK(answer.has_value() == is_float);
    if (is_float) continue;
    REQUIRE(answer.error().errors.size() == 1);
    CHECK(answer.error().errors.front().pointer == "/reduce");
    CHECK(answer.error().errors.front().detail == "is avg; of " + asked.dtype + " there is only sum");
  }
}

TEST_CASE("clipping by norm in rounds needs all elements in one place") {
  auto asked = request({1 << 20});
  asked.staleness = 0;
  asked.optimizer.name = "sgd";
  asked.optimizer.clip_norm = 1;
  CHECK(cut(check_parameter("w", asked).value(), 4).size() == 1);
  asked.shards = 2;
  CHECK(check_parameter("w", asked).has_error());
}

}  // namespace chorus::coordinator
