// Averages whose sums do not fit their dtype, as clients call them.
#include <doctest/doctest.h>

#include <limits>

#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service::testing;

namespace {

template <class T>
void put_on_all(LiveGroup& group, std::string const& name, std::string const& dtype, T value, std::size_t count) {
  for (std::size_t rank = 0; rank < group.ranks(); ++rank)
    group.at(rank).put_tensor(name, dtype, std::vector<T>(count, value));
}

template <class T>
void averages_to_itself(LiveGroup& group, std::string const& dtype, T value) {
  for (auto const* algorithm :
       {"auto", "ring", "recursive_doubling", "halving_doubling", "multi_tree", "mesh", "tree", "bcube", "allpairs"})
    for (auto const* in_place : {"false", "true"}) {
      put_on_all(group, "x", dtype, value, 700);
      auto const body = R"({"tensor":"x","reduce":"avg","algorithm":")" + std::string(algorithm) + R"(","in_place":)" +
                        in_place + "}";
      for (auto const& answer : group.all_reduce(body)) {
        INFO(dtype, " ", body, " ", answer.body);
        CHECK(answer.status == 200);
      }
      for (std::size_t rank = 0; rank < group.ranks(); ++rank) {
        INFO(dtype, " ", body, " rank ", rank);
        CHECK((group.at(rank).template get_tensor<T>("x") == std::vector<T>(700, value)));
      }
    }
}

}  // namespace

TEST_CASE("four f16 of 60,000, u8 of 200, i8 of 127 and more are their average, by every algorithm") {
  LiveGroup group(4);
  group.assign(1);
  averages_to_itself<std::uint16_t>(group, "f16", 0x7b53);
  averages_to_itself<std::uint16_t>(group, "bf16", 0x7f62);
  averages_to_itself<std::uint8_t>(group, "u8", 200);
  averages_to_itself<std::int8_t>(group, "i8", 127);
  averages_to_itself<std::int8_t>(group, "i8", -128);
  averages_to_itself<std::int32_t>(group, "i32", std::numeric_limits<std::int32_t>::max());
  averages_to_itself<std::uint64_t>(group, "u64", std::numeric_limits<std::uint64_t>::max());
  averages_to_itself<std::int64_t>(group, "i64", std::numeric_limits<std::int64_t>::min());
  averages_to_itself<float>(group, "f32", 3e38F);
  averages_to_itself<double>(group, "f64", 1.7e308);
}

TEST_CASE("five equal f32 or f64 are their average by every algorithm, although their sum is rounded") {
  LiveGroup group(5);
  group.assign(1);
  averages_to_itself<float>(group, "f32", 0.1F);
  averages_to_itself<float>(group, "f32", std::numeric_limits<float>::max());
  averages_to_itself<double>(group, "f64", 0.1);
  averages_to_itself<double>(group, "f64", std::numeric_limits<double>::lowest());
}

TEST_CASE("the average of several tensors per worker does not overflow in the worker either") {
  LiveGroup group(2);
  group.assign(1);
  auto const check = [&]<class T>(std::string const& dtype, T value) {
    put_on_all(group, "grad/0", dtype, value, 3000);
    put_on_all(group, "grad/1", dtype, value, 3000);
    for (auto const* local : {"auto", "tree", "ring"}) {
      auto const body = R"({"tensor":"grad","reduce":"avg","local_algorithm":")" + std::string(local) + "\"}";
      for (auto const& answer : group.all_reduce(body)) {
        INFO(dtype, " ", body, " ", answer.body);
        CHECK(answer.status == 200);
      }
      for (auto const* name : {"grad/0", "grad/1"})
        CHECK((group.at(1).template get_tensor<T>(name) == std::vector<T>(3000, value)));
    }
  };
  check("u8", std::uint8_t{200});
  check("f16", std::uint16_t{0x7b53});
  check("i64", std::numeric_limits<std::int64_t>::max());
  check("f32", std::numeric_limits<float>::max());
  check("f64", std::numeric_limits<double>::lowest());
}

TEST_CASE("nor where workers have different numbers of tensors, or say themselves how many they have") {
  LiveGroup group(2);
  group.assign(1);
  auto const largest = std::numeric_limits<float>::max();
  for (auto const* name : {"grad/0", "grad/1", "grad/2"})
    group.at(0).put_tensor(name, "f32", std::vector<float>(3000, largest));
  group.at(1).put_tensor("grad/0", "f32", std::vector<float>(3000, largest));
  for (auto const& answer : group.all_reduce(R"({"tensor":"grad","reduce":"avg","contributions":4})"))
    CHECK_MESSAGE(answer.status == 200, answer.body);
  for (std::size_t rank = 0; rank < 2; ++rank)
    CHECK((group.at(rank).get_tensor<float>("grad/0") == std::vector<float>(3000, largest)));

  for (auto const* in_place : {"false", "true"}) {
    put_on_all(group, "x", "f32", largest, 3000);
    auto const body = R"({"tensor":"x","reduce":"avg","contributions":2,"in_place":)" + std::string(in_place) + "}";
    for (auto const& answer : group.all_reduce(body)) CHECK_MESSAGE(answer.status == 200, answer.body);
    CHECK((group.at(1).get_tensor<float>("x") == std::vector<float>(3000, largest)));
  }
}

TEST_CASE("nor does the average of a list of tensors, of a reduction to the root, and of one that is scattered") {
  LiveGroup group(3);
  group.assign(1);
  put_on_all(group, "a", "i16", std::int16_t{-32768}, 100);
  put_on_all(group, "b", "i16", std::int16_t{32767}, 7);
  for (auto const& answer : group.all_reduce(R"({"tensors":["a","b"],"reduce":"avg","algorithm":"ring"})"))
    CHECK_MESSAGE(answer.status == 200, answer.body);
  CHECK((group.at(2).get_tensor<std::int16_t>("a") == std::vector<std::int16_t>(100, -32768)));
  CHECK((group.at(0).get_tensor<std::int16_t>("b") == std::vector<std::int16_t>(7, 32767)));

  put_on_all(group, "x", "u64", ~std::uint64_t{0}, 10);
  for (auto const& answer : group.call("reduce", R"({"tensor":"x","reduce":"avg","algorithm":"chain","root":1})"))
    CHECK_MESSAGE(answer.status == 200, answer.body);
  CHECK((group.at(1).get_tensor<std::uint64_t>("x") == std::vector<std::uint64_t>(10, ~std::uint64_t{0})));

  put_on_all(group, "y", "i64", std::numeric_limits<std::int64_t>::min(), 11);
  for (auto const& answer :
       group.call("reduce_scatter", R"({"tensor":"y","output":"z","reduce":"avg","algorithm":"ring"})"))
    CHECK_MESSAGE(answer.status == 200, answer.body);
  for (std::size_t rank = 0; rank < 3; ++rank)
    CHECK((group.at(rank).get_tensor<std::int64_t>("z") ==
           std::vector<std::int64_t>(rank < 2 ? 4 : 3, std::numeric_limits<std::int64_t>::min())));
}
