// The same steps on the host and on a GPU give the same bits of values and state.
#include "worker/parameters/optimizers/gpu_elements.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "worker/devices/cuda/testing/gpu_double.hpp"
#include "worker/devices/reduce.hpp"
#include "worker/parameters/optimizers/testing/step_cases.hpp"

using namespace chorus;
using namespace chorus::parameters;
using namespace chorus::parameters::testing;
using devices::GpuErrc;
using devices::testing::GpuDouble;

namespace {

using Bytes = std::vector<std::byte>;

Bytes numbers(Dtype dtype, std::size_t count, std::uint64_t seed) {
  Bytes bytes(count * element_bytes(dtype));
  for (std::size_t i = 0; i < count; ++i) put_number(dtype, bytes.data() + i * element_bytes(dtype), seed + i, false);
  return bytes;
}

struct Settings {
  char const* json = R"({"name":"none"})";
  Dtype dtype = Dtype::f32;
  std::uint64_t elements = 0;
  std::uint64_t row_elements = 0;
};

Optimizer optimizer_of(Settings const& s, Optimizer::State state) {
  return Optimizer::make(api::complete(api::parse_optimizer(s.json).value(), "").value(), s.dtype, s.elements,
                         s.row_elements, state)
      .value();
}

// A shard on the host and the same shard on a GPU, with the same steps.
class Twins {
 public:
  explicit Twins(Settings const& s) : Twins(s, std::make_unique<GpuDouble>()) {}
  Twins(Settings const& s, std::unique_ptr<GpuDouble> gpu)
      : gpu_(*gpu),
        unit_(std::move(gpu), {.arena_bytes = s.elements * 16 + (6 << 20), .pinned_bytes = 8 << 20}),
        here_(optimizer_of(s, Optimizer::State::here)),
        there_(optimizer_of(s, Optimizer::State::elsewhere)),
        values_(numbers(s.dtype, s.elements, 1)),
        row_elements_(s.row_elements) {
    elements_ = GpuElements::make(unit_, there_).value();
    REQUIRE(elements_->adopt(values_).has_value());
    here_.adopt(values_, 0);
  }

  GpuDouble& gpu() { return gpu_; }
  GpuElements& elements() { return *elements_; }

  Status step(std::vector<Bytes> const& gradients, Dtype dtype, bool averages = false,
              std::optional<double> norm = std::nullopt) {
    std::vector<Gradient> all;
    std::vector<std::byte const*> sources;
    for (auto const& gradient : gradients) {
      all.push_back({gradient, dtype});
      sources.push_back(gradient.data());
    }
    Bytes sum(gradients.front().size());
    auto* const destination = sum.data();
    devices::Reducer(averages ? ReduceOp::avg : ReduceOp::sum, dtype)
        .run({sources.data(), sources.size(), &destination, 1, sum.size() / element_bytes(dtype), false},
             {.divisor = static_cast<std::uint32_t>(sources.size())});
    here_.apply(here_.begin_step(norm), values_, 0, {sum, dtype});
    return elements_->step(there_, there_.begin_step(norm), all, averages, elements_->reserve().value());
  }
  Status step_rows(std::vector<std::uint64_t> const& rows, Bytes const& gradient, Dtype dtype) {
    here_.step_rows(values_, rows, {gradient, dtype}, 1.0);
    return elements_->step_rows(there_, rows, row_elements_, {gradient, dtype}, 1.0, elements_->reserve().value());
  }

  // Returns "" or the array that differs.
  std::string difference() {
    std::vector<StateArray> present = here_.state();
    present.push_back({"values", here_.dtype(), 1, values_});
    for (auto const& kept : there_.state()) present.push_back({"", kept.dtype, 1, kept.bytes});
    for (auto const& array : elements_->arrays()) {
      auto const same = std::ranges::find(present, array.name, &StateArray::name);
      if (same == present.end() || same->bytes.size() != array.bytes) return std::string(array.name) + " is not there";
      Bytes found(array.bytes);
      REQUIRE(elements_->read(array.name, found).has_value());
      if (!std::ranges::equal(found, same->bytes)) return std::string(array.name);
    }
    return "";
  }

 private:
  GpuDouble& gpu_;
  devices::GpuUnit unit_;
  Optimizer here_, there_;
  Bytes values_;
  std::uint64_t const row_elements_;
  std::unique_ptr<GpuElements> elements_;
};

constexpr char const* optimizers[] = {
    R"({"name":"none"})",
    R"({"name":"sgd","weight_decay":0.1})",
    R"({"name":"momentum","clip_value":0.5})",
    R"({"name":"nesterov"})",
    R"({"name":"adagrad","initial_accumulator":0.5})",
    R"({"name":"adam","clip_norm":0.25})",
    R"({"name":"adamw","weight_decay":0.1})",
};

}  // namespace

TEST_CASE("every optimizer steps on a GPU as on the host, by one gradient and by several") {
  for (auto const* json : optimizers)
    for (auto const dtype : float_dtypes)
      for (auto const gradient_dtype : {dtype, is_half(dtype) ? Dtype::f32 : dtype})
        for (std::size_t const elements : {1, 7, 1003}) {
          Twins twins({json, dtype, elements});
          std::uint64_t seed = 100;
          for (bool const averages : {false, true})
            for (std::size_t const clients : {1, 2, 3}) {
              std::vector<Bytes> gradients;
              for (std::size_t c = 0; c < clients; ++c)
                gradients.push_back(numbers(gradient_dtype, elements, seed += elements));
              REQUIRE(twins.step(gradients, gradient_dtype, averages, 1.0).has_value());
            }
          CHECK_MESSAGE(twins.difference() == "", json << " of " << elements << " " << name(dtype) << " by "
                                                       << name(gradient_dtype) << ": " << twins.difference());
        }
}

TEST_CASE("integers are summed on a GPU as on the host") {
  for (auto const dtype : {Dtype::i32, Dtype::u8, Dtype::i64}) {
    Twins twins({.dtype = dtype, .elements = 501});
    auto const bytes = [&](unsigned seed) {
      Bytes all(501 * element_bytes(dtype));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i * 37 + seed);
      return all;
    };
    REQUIRE(twins.step({bytes(1), bytes(2), bytes(3)}, dtype, true).has_value());
    CHECK(twins.difference() == "");
  }
}

TEST_CASE("a gradient larger than a slot is copied to the device in pieces, one after the other") {
  for (auto const dtype : {Dtype::f32, Dtype::bf16}) {
    Twins twins({R"({"name":"adam"})", dtype, 700'001});
    for (std::uint64_t seed = 1; seed < 4; ++seed)
      REQUIRE(twins.step({numbers(Dtype::f32, 700'001, seed), numbers(Dtype::f32, 700'001, seed + 50)}, Dtype::f32)
                  .has_value());
    CHECK(twins.difference() == "");
  }
}

TEST_CASE("rows that have seen different numbers of steps count them on a GPU as on the host") {
  for (auto const* json : {R"({"name":"adam"})", R"({"name":"none"})", R"({"name":"momentum"})"})
    for (auto const dtype : {Dtype::f32, Dtype::f16}) {
      Twins twins({json, dtype, 50, 5});
      REQUIRE(twins.step_rows({1, 2, 7}, numbers(dtype, 15, 3), dtype).has_value());
      REQUIRE(twins.step_rows({2, 9}, numbers(dtype, 10, 30), dtype).has_value());
      REQUIRE(twins.step({numbers(dtype, 50, 60)}, dtype).has_value());
      CHECK(twins.difference() == "");
    }
}

TEST_CASE("a row that is longer than a slot is stepped in parts, once") {
  constexpr std::uint64_t row = 300'000;
  Twins twins({R"({"name":"adam"})", Dtype::f32, 2 * row, row});
  REQUIRE(twins.step_rows({0, 1}, numbers(Dtype::f32, 2 * row, 3), Dtype::f32).has_value());
  REQUIRE(twins.step_rows({1}, numbers(Dtype::f32, row, 4), Dtype::f32).has_value());
  CHECK(twins.difference() == "");
}

TEST_CASE("a device that fails at any of its operations gives an error, and leaves no memory in use") {
  auto const run = [](std::int64_t operations) {
    Twins twins({R"({"name":"adamw"})", Dtype::f16, 600'000});
    auto const gradient = numbers(Dtype::f16, 600'000, 9);
    if (operations >= 0) twins.gpu().fail_after(operations, GpuErrc::lost);
    auto const taken = twins.step({gradient, gradient}, Dtype::f16);
    if (taken) return true;
    CHECK(taken.error().code == GpuErrc::lost);
    CHECK(twins.elements().unit().lost() == taken.error().detail);
    CHECK(twins.step({gradient}, Dtype::f16).error().code == GpuErrc::lost);
    return false;
  };
  CHECK(run(-1));
  std::int64_t operations = 0;
  while (!run(operations)) ++operations;
  CHECK(operations > 8);
}

TEST_CASE("a step on a device that hangs ends with the device lost, and its pinned memory is kept until it goes on") {
  auto owned = std::make_unique<GpuDouble>();
  auto& gpu = *owned;
  devices::GpuUnit unit(std::move(owned),
                        {.arena_bytes = 1 << 20, .pinned_bytes = 8 << 20, .patience = std::chrono::milliseconds(20)});
  auto optimizer = optimizer_of({.elements = 1000}, Optimizer::State::elsewhere);
  auto const elements = GpuElements::make(unit, optimizer).value();
  gpu.hang();
  auto const bytes = numbers(Dtype::f32, 1000, 9);
  Gradient const gradient{bytes, Dtype::f32};
  auto const stepped =
      elements->step(optimizer, optimizer.begin_step({}), {&gradient, 1}, false, elements->reserve().value());
  CHECK(stepped.error().detail == "cuda:0: a part of a step took longer than 20 ms");
  CHECK(unit.lost().has_value());
  auto const free_slots = [&unit] {
    std::vector<devices::PinnedSlot> slots;
    for (;;) {
      auto slot = unit.pinned().take();
      if (!slot) return slots.size();
      slots.push_back(std::move(*slot));
    }
  };
  CHECK(free_slots() == 6);
  gpu.go_on();
  while (!unit.rests()) {}
  CHECK(free_slots() == 8);
}

TEST_CASE("a shard for which the device has no room is refused with the sizes") {
  devices::GpuUnit unit(std::make_unique<GpuDouble>(), {.arena_bytes = 1 << 20});
  auto const optimizer = optimizer_of({.elements = 1 << 20}, Optimizer::State::elsewhere);
  CHECK(GpuElements::make(unit, optimizer).error().code == GpuErrc::out_of_memory);
  CHECK(unit.totals().arena_used_bytes == 0);
}
