// A GPU's steps give the bits of the CPU's kernels: every method, dtype and gradient, at any start and count.
#include <doctest/doctest.h>

#include <chrono>
#include <random>

#include "worker/devices/cuda/testing/every_gpu.hpp"
#include "worker/parameters/optimizers/kernels.hpp"
#include "worker/parameters/optimizers/testing/step_cases.hpp"

using namespace chorus;
using namespace chorus::parameters;
using namespace chorus::parameters::testing;
using devices::Gpu;
using devices::Lane;

namespace {

constexpr std::size_t guard = 64;  // bytes around each array that must not be written
constexpr auto untouched = std::byte{0x5a};

// An array in host memory and the same array on a GPU.
struct Twin {
  std::vector<std::byte> host;  // with its guards
  std::byte* on_gpu = nullptr;  // without guards
};

class Bench {
 public:
  explicit Bench(Gpu& gpu) : gpu_(gpu), session_(gpu.session().value()), device_(gpu.allocate(1 << 20).value()) {
    pinned_ = gpu.allocate_pinned(1 << 20).value();
  }
  ~Bench() {
    session_ = nullptr;
    gpu_.free_pinned(pinned_);
    gpu_.free(device_);
  }
  Bench(Bench const&) = delete;
  Bench& operator=(Bench const&) = delete;

  // Puts an array `shift` elements after an address that is aligned to 16 bytes.
  Twin put(Dtype dtype, std::size_t count, std::size_t shift, std::uint64_t seed, bool positive) {
    auto const size = element_bytes(dtype);
    Twin twin;
    twin.host.assign(count * size + 2 * guard, untouched);
    for (std::size_t i = 0; i < count; ++i) put_number(dtype, twin.host.data() + guard + i * size, seed + i, positive);
    used_ = (used_ + 255) / 256 * 256;
    auto* const at = device_ + used_ + shift * size;
    used_ += shift * size + twin.host.size();
    std::memcpy(pinned_, twin.host.data(), twin.host.size());
    copy(Lane::in, at, pinned_, twin.host.size());
    twin.on_gpu = at + guard;
    return twin;
  }
  bool are_same(Twin const& twin) {
    copy(Lane::out, pinned_, twin.on_gpu - guard, twin.host.size());
    return std::memcmp(pinned_, twin.host.data(), twin.host.size()) == 0;
  }
  void step(devices::StepOrder const& order) {
    REQUIRE(session_->step(order).has_value());
    until_done(Lane::compute);
  }
  void clear() { used_ = 0; }

 private:
  void copy(Lane lane, std::byte* to, std::byte const* from, std::size_t bytes) {
    REQUIRE(session_->copy(lane, to, from, bytes).has_value());
    until_done(lane);
  }
  void until_done(Lane lane) {
    auto const mark = session_->mark(lane).value();
    auto const deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (bool is_done = false; !is_done; is_done = session_->reached(mark).value())
      REQUIRE(std::chrono::steady_clock::now() < deadline);
  }

  Gpu& gpu_;
  std::unique_ptr<devices::GpuSession> session_;
  std::byte* device_;
  std::byte* pinned_ = nullptr;
  std::size_t used_ = 0;
};

devices::StepScalars scalars_of(Coefficients const& c) {
  return {c.rate, c.first, c.second, c.first_rest, c.second_rest, c.root, c.epsilon, c.decay, c.scale, c.limit};
}

// Returns "" or the difference.
std::string difference(Bench& bench, StepCase const& c, std::size_t count, std::size_t shift) {
  bench.clear();
  auto const wide = is_half(c.dtype) ? Dtype::f32 : c.dtype;
  auto const method = static_cast<Method>(c.method);
  auto values = bench.put(c.dtype, count, shift, 1, false), master = bench.put(wide, count, shift % 3, 7, false);
  auto first = bench.put(wide, count, (shift + 1) % 5, 100, method == Method::adagrad);
  auto second = bench.put(wide, count, (shift + 2) % 7, 200, true);
  auto gradient = bench.put(c.wide_gradient ? Dtype::f32 : c.dtype, count, shift * 3 % 5, 300, false);
  auto const coefficients = some_coefficients(c.shapes);

  devices::StepOrder order;
  order.method = static_cast<devices::StepMethod>(c.method);
  order.dtype = c.dtype;
  order.wide_gradient = c.wide_gradient;
  order.shapes_gradient = c.shapes;
  order.values = values.on_gpu;
  order.gradient = gradient.on_gpu;
  if (is_half(c.dtype)) order.master = master.on_gpu;
  if (method != Method::sgd) order.first = first.on_gpu;
  if (method == Method::adam || method == Method::adamw) order.second = second.on_gpu;
  order.elements = count;
  order.scalars = scalars_of(coefficients);
  bench.step(order);

  auto const loop =
      best_kernels().step[c.method][static_cast<std::size_t>(c.dtype)][c.wide_gradient ? 1 : 0][c.shapes ? 1 : 0];
  auto const at = [](Twin& twin) { return &twin.host[guard]; };
  loop({at(values), at(gradient), at(master), at(first), at(second), count, coefficients});
  if (!bench.are_same(values)) return "values";
  if (!bench.are_same(master)) return "master";
  if (!bench.are_same(first)) return "first";
  if (!bench.are_same(second)) return "second";
  return bench.are_same(gradient) ? "" : "gradient";
}

}  // namespace

TEST_CASE("a GPU steps to the bits of the CPU's loops, and writes nothing beside its arrays") {
  devices::testing::on_every_gpu([](Gpu& gpu) {
    Bench bench(gpu);
    for_each_case([&](StepCase const& c) {
      for (std::size_t const count : {0, 1, 3, 7, 8, 17, 64, 1003, 9000})
        for (std::size_t const shift : {0, 1, 2, 3, 5}) {
          auto const differs = difference(bench, c, count, shift);
          CHECK_MESSAGE(differs == "", "method " << c.method << " over " << count << " " << name(c.dtype)
                                                 << (c.wide_gradient ? " by f32" : "") << (c.shapes ? ", shaped" : "")
                                                 << ", shifted by " << shift << ", on " << gpu.info().name << ": "
                                                 << differs);
        }
    });
  });
}

TEST_CASE("a step that the device refuses is an error, and the bytes of gradients are counted") {
  devices::testing::GpuDouble gpu;
  auto const session = gpu.session().value();
  gpu.fail_after(1, devices::GpuErrc::failed);
  devices::StepOrder order;
  CHECK(session->step(order).has_value());
  CHECK(session->step(order).error().code == devices::GpuErrc::failed);
  order.elements = 10;
  order.dtype = Dtype::f16;
  order.wide_gradient = true;
  auto* const memory = gpu.allocate(4096).value();
  order.values = memory;
  order.gradient = memory + 512;
  order.master = memory + 1024;
  CHECK(session->step(order).has_value());
  CHECK(session->use().stepped_bytes == 40);
}
