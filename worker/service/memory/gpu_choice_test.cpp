#include "worker/service/memory/gpu_choice.hpp"

#include <doctest/doctest.h>

#include "worker/service/testing/doubles.hpp"

using namespace chorus;
using namespace chorus::service;
using testing::make_doubles;

TEST_CASE("a worker uses all GPUs, none, or those that are numbered") {
  CHECK(parse_gpu_choice("auto").value().is_auto);
  CHECK(parse_gpu_choice("none").value().indices.empty());
  CHECK(parse_gpu_choice("2,0").value().indices == std::vector<std::uint32_t>{2, 0});
  for (auto const* text : {"", "all", "0,", ",0", "0,,1", "-1", "1x", "0,0", "99999999999", "cuda:0"}) {
    INFO(text);
    CHECK(parse_gpu_choice(text).error().code == devices::GpuErrc::unavailable);
  }
}

TEST_CASE("a worker gets those of the existing GPUs that it asked for, in its order") {
  auto const chosen = choose(parse_gpu_choice("2,0").value(), make_doubles(3).found).value();
  REQUIRE(chosen.gpus.size() == 2);
  CHECK(chosen.gpus[0]->info().index == 2);
  CHECK(chosen.gpus[1]->info().index == 0);
  CHECK(choose({}, make_doubles(3).found).value().gpus.size() == 3);
  auto const none = choose(parse_gpu_choice("none").value(), make_doubles(3).found).value();
  CHECK(none.gpus.empty());
  CHECK(none.why_none == "no GPU: the worker was told to use none (--gpus none)");
}

TEST_CASE("a GPU that was asked for and does not exist is an error that lists the existing ones") {
  auto const why = [](char const* choice, devices::FoundGpus found) {
    return choose(parse_gpu_choice(choice).value(), std::move(found)).error().detail;
  };
  CHECK(why("1,7", make_doubles(2).found) == "there is no cuda:7 here: there is cuda:0");
  auto one = make_doubles(1).found;
  one.why_none = "cuda:1 is left out";
  CHECK(why("1", std::move(one)) == "there is no cuda:1 here: there is cuda:0; cuda:1 is left out");
  CHECK(why("0", {{}, "no driver"}) == "there is no cuda:0 here: no driver");
}
