// Several GPUs of one worker that sum and broadcast tensors by NCCL, with doubles of the GPUs and of NCCL.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "worker/devices/cuda/testing/team.hpp"
#include "worker/devices/nccl/nccl_teams.hpp"
#include "worker/devices/nccl/testing/double_library.hpp"

using namespace chorus;
using namespace chorus::devices;
using namespace chorus::devices::testing;

namespace {

constexpr std::size_t count = (1 << 18) + 77;
constexpr std::size_t size = count * sizeof(float);

// Lines for the log, from any thread.
struct Said {
  std::mutex mutex;
  std::string lines;
  [[nodiscard]] bool holds(std::string const& text) {
    std::scoped_lock lock(mutex);
    return lines.find(text) != std::string::npos;
  }
};

NcclTeams::Tell tell(std::shared_ptr<Said> const& said) {
  return [said](std::string const& line, bool) {
    std::scoped_lock lock(said->mutex);
    said->lines += line + "\n";
  };
}

// GPUs without access to each other's memory, which NCCL does not need, with a tensor of floats on each.
struct Worker {
  explicit Worker(std::size_t gpus, std::chrono::milliseconds nccl_patience = patience,
                  std::chrono::milliseconds gpu_patience = patience)
      : team(gpus, false, {.arena_bytes = 32 << 20, .patience = gpu_patience}),
        nccl(NcclLibrary::load(NCCL_DOUBLE).value(), tell(said), nccl_patience) {
    for (std::size_t n = 0; n < gpus; ++n) tensors.push_back(team.put(n, random_floats(count, n)));
    result = team.make_room(1, size);
  }

  bool get_ready() {
    if (!nccl.ready(team.units)) static_cast<void>(nccl.settled(std::chrono::steady_clock::now() + patience));
    return nccl.ready(team.units);
  }
  [[nodiscard]] Status sum() { return nccl.reduce(ReduceOp::sum, Dtype::f32, tensors, result, count); }
  // Returns the sum in this order of GPUs.
  [[nodiscard]] Bytes sum_of(std::vector<std::size_t> const& order) const {
    std::vector<float> sum(count);
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto const bytes = random_floats(count, order[i]);
      for (std::size_t e = 0; e < count; ++e) {
        float value = 0;
        std::memcpy(&value, bytes.data() + e * sizeof value, sizeof value);
        sum[e] = i == 0 ? value : sum[e] + value;
      }
    }
    Bytes bytes(size);
    std::memcpy(bytes.data(), sum.data(), size);
    return bytes;
  }

  static constexpr std::chrono::seconds patience{20};
  std::shared_ptr<Said> const said = std::make_shared<Said>();
  Team team;
  std::vector<Placed> tensors;
  Placed result;
  NcclTeams nccl;
};

}  // namespace

TEST_CASE("no NCCL is an answer, and so is a library that is something else") {
  auto const none = NcclLibrary::load("libno-such-nccl.so.2");
  REQUIRE(none.has_error());
  CHECK(none.error().code == NcclErrc::no_library);
  CHECK(none.error().detail.find("libno-such-nccl.so.2") != std::string::npos);
  auto const other = NcclLibrary::load("libm.so.6");
  REQUIRE(other.has_error());
  CHECK(other.error().code == NcclErrc::no_nccl);
  CHECK(other.error().detail == "libm.so.6 has no ncclGetVersion");
  CHECK(NcclLibrary::load(NCCL_DOUBLE).value()->version() == "2.21.5");
}

TEST_CASE("NCCL is used for reductions that equal the worker's own: not for f16 and bf16, nor for min of floats") {
  for (auto const dtype : {Dtype::f64, Dtype::f32, Dtype::i64, Dtype::u8}) {
    CHECK(NcclTeams::has(ReduceOp::sum, dtype));
    CHECK(NcclTeams::has(ReduceOp::prod, dtype));
  }
  for (auto const dtype : {Dtype::f16, Dtype::bf16, Dtype::i16, Dtype::u16})
    for (auto const op : all_reduce_ops) CHECK_FALSE(NcclTeams::has(op, dtype));
  CHECK(NcclTeams::has(ReduceOp::max, Dtype::i32));
  CHECK_FALSE(NcclTeams::has(ReduceOp::max, Dtype::f32));
  CHECK_FALSE(NcclTeams::has(ReduceOp::bor, Dtype::u32));
}

TEST_CASE("GPUs sum and broadcast by NCCL, in its order, and the bytes are counted") {
  NcclDouble const library;
  for (std::size_t const gpus : {2u, 3u, 8u}) {
    Worker worker(gpus);
    REQUIRE(worker.get_ready());
    CHECK(worker.said->holds("NCCL sums and spreads tensors of one name on cuda:0, cuda:1"));
    std::reverse(worker.tensors.begin(), worker.tensors.end());  // the order of the sources does not matter
    REQUIRE(worker.sum().has_value());
    std::vector<std::size_t> backwards;
    for (auto n = gpus; n-- > 0;) backwards.push_back(n);
    auto const sum = worker.sum_of(backwards);
    CHECK((worker.team.get(worker.result, size) == sum));
    for (std::size_t n = 0; n < gpus; ++n)
      CHECK((worker.team.get(worker.tensors[n], size) == random_floats(count, gpus - 1 - n)));

    std::vector<Placed> everywhere;
    for (std::size_t n = 0; n < gpus; ++n) everywhere.push_back(worker.team.make_room(n, size));
    REQUIRE(worker.nccl.broadcast(worker.result, everywhere, size).has_value());
    for (auto const& place : everywhere) CHECK((worker.team.get(place, size) == sum));
    for (auto* const unit : worker.team.units) CHECK(unit->totals().use.nccl_bytes == 2 * size);
  }
  CHECK(library.open_communicators() == 0);
  CHECK(library.stuck() == 0);
}

TEST_CASE("every dtype and operation that NCCL has, by the numbers of its interface") {
  NcclDouble const library;
  Worker worker(2);
  REQUIRE(worker.get_ready());
  for (auto const dtype : all_dtypes)
    for (auto const op : all_reduce_ops) {
      if (!NcclTeams::has(op, dtype)) continue;
      INFO(std::string(name(op)), " of ", std::string(name(dtype)));
      constexpr std::size_t elements = 1001;
      auto const bytes = elements * element_bytes(dtype);
      // These bytes are ordinary numbers as floats.
      Bytes one(bytes, std::byte{0x41}), other(bytes, std::byte{0x3f});
      std::vector<Placed> const sources{worker.team.put(0, one), worker.team.put(1, other)};
      std::vector<std::byte const*> const at_home{sources[0].data, worker.team.put(0, other).data};
      auto const result = worker.team.make_room(0, bytes), expected = worker.team.make_room(0, bytes);
      auto* const destination = expected.data;
      REQUIRE(worker.nccl.reduce(op, dtype, sources, result, elements).has_value());
      REQUIRE(worker.team.units[0]
                  ->fold(op, dtype, {at_home.data(), at_home.size(), &destination, 1, elements})
                  .has_value());
      CHECK((worker.team.get(result, bytes) == worker.team.get(expected, bytes)));
    }
}

TEST_CASE("no call waits while communicators are made, nor if that fails") {
  NcclDouble const library;
  {
    library.hold(true);
    Worker worker(2);
    CHECK_FALSE(worker.nccl.ready(worker.team.units));
    CHECK_FALSE(worker.nccl.ready(worker.team.units));
    auto const early = worker.sum();
    REQUIRE(early.has_error());
    CHECK(early.error().code == GpuErrc::unavailable);
    library.hold(false);
    CHECK(worker.get_ready());
  }
  library.fail_after(0);
  Worker worker(2);
  CHECK_FALSE(worker.get_ready());
  CHECK(worker.said->holds("NCCL is not used for cuda:0, cuda:1: ncclCommInitAll: unhandled cuda error"));
  CHECK(library.open_communicators() == 0);
}

TEST_CASE(
    "whichever call of NCCL fails, the error has the device and its words, nothing hangs, and NCCL is left alone") {
  NcclDouble const library;
  int calls = 0;
  {
    Worker worker(3);
    REQUIRE(worker.get_ready());
    library.fail_after(-1);
    REQUIRE(worker.sum().has_value());
    calls = library.calls();
    REQUIRE(calls > 5);
  }
  for (int nth = 0; nth < calls; ++nth) {
    INFO(nth);
    Worker worker(3);
    REQUIRE(worker.get_ready());
    library.fail_after(nth);
    auto const failed = worker.sum();
    library.fail_after(-1);
    REQUIRE(failed.has_error());
    CHECK(failed.error().code == GpuErrc::failed);
    CHECK(failed.error().detail.starts_with("cuda:"));
    CHECK(failed.error().detail.find("nccl") != std::string::npos);
    CHECK(failed.error().detail.find("unhandled cuda error (run with") != std::string::npos);
    CHECK(worker.said->holds("NCCL is not used any more: " + failed.error().detail));
    CHECK_FALSE(worker.nccl.ready(worker.team.units));
    CHECK(worker.sum().error().code == GpuErrc::unavailable);
    CHECK(library.open_communicators() == 0);
    CHECK(library.stuck() == 0);
    CHECK_FALSE(worker.team.units[0]->lost());
    // The queues are free, and the tensors unchanged.
    for (std::size_t n = 0; n < 3; ++n) {
      Bytes bytes(size);
      REQUIRE(worker.team.units[n]->download(bytes, worker.tensors[n].data).has_value());
      CHECK((bytes == random_floats(count, n)));
    }
  }
}

TEST_CASE("an asynchronous error of NCCL ends the collective, and kernels that would never end are aborted") {
  NcclDouble const library;
  Worker worker(2);
  REQUIRE(worker.get_ready());
  library.jam(true);
  auto const failed = worker.sum();
  REQUIRE(failed.has_error());
  CHECK(failed.error().detail == "cuda:0: ncclReduce: remote process exited or there was a network error");
  CHECK(library.stuck() == 0);
  CHECK(library.open_communicators() == 0);
}

TEST_CASE("a collective that does not end is one that has failed") {
  NcclDouble const library;
  Worker worker(2, std::chrono::milliseconds(20));
  REQUIRE(worker.get_ready());
  library.jam(false);
  CHECK(worker.sum().error().detail == "cuda:0, cuda:1: ncclReduce took longer than 20 ms");
  CHECK(library.stuck() == 0);
  CHECK(library.open_communicators() == 0);
}

TEST_CASE("GPUs that hang below NCCL are lost, and nobody waits for them") {
  NcclDouble const library;
  Worker worker(2, std::chrono::milliseconds(20), std::chrono::milliseconds(20));
  REQUIRE(worker.get_ready());
  for (auto* const gpu : worker.team.gpus) gpu->hang();
  CHECK(worker.sum().error().detail == "cuda:0, cuda:1: ncclReduce took longer than 20 ms");
  for (auto const* const unit : worker.team.units)
    CHECK(unit->lost().value().ends_with(": work took longer than 20 ms"));
  for (auto* const gpu : worker.team.gpus) gpu->go_on();
  for (auto* const unit : worker.team.units)
    while (!unit->rests()) {}
}

TEST_CASE("communicators that are made too late are destroyed") {
  NcclDouble const library;
  std::jthread later;
  {
    library.hold(true);
    Worker worker(2);
    CHECK_FALSE(worker.nccl.ready(worker.team.units));
    later = std::jthread([&library] { library.hold(false); });
  }
  CHECK(library.open_communicators() == 0);
}

TEST_CASE("a GPU that fails while NCCL works there is named, and NCCL is left alone") {
  NcclDouble const library;
  for (auto const how : {GpuErrc::failed, GpuErrc::lost})
    for (int const call : {2, 3}) {  // after the session and its queue were made
      Worker worker(2);
      REQUIRE(worker.get_ready());
      worker.team.gpus[1]->fail_after(call, how);
      auto const failed = worker.sum();
      REQUIRE(failed.has_error());
      CHECK(failed.error().code == how);
      CHECK(failed.error().detail.starts_with("cuda:1"));
      CHECK(worker.team.units[1]->lost().has_value() == (how == GpuErrc::lost));
      CHECK_FALSE(worker.nccl.ready(worker.team.units));
      CHECK(library.stuck() == 0);
      CHECK(library.open_communicators() == 0);
    }
}

TEST_CASE("a GPU that refuses before NCCL was asked is the error of that call alone") {
  NcclDouble const library;
  Worker worker(2);
  REQUIRE(worker.get_ready());
  worker.team.gpus[0]->fail_after(0, GpuErrc::failed);
  CHECK(worker.sum().error().code == GpuErrc::failed);
  worker.team.gpus[0]->fail_after(-1, GpuErrc::failed);
  CHECK(worker.nccl.ready(worker.team.units));
  CHECK(worker.sum().has_value());
}

TEST_CASE("while communicators are made for some GPUs, others do not begin either") {
  NcclDouble const library;
  Worker worker(3);
  std::vector<GpuUnit*> const two{worker.team.units[0], worker.team.units[1]};
  REQUIRE(worker.get_ready());
  library.hold(true);
  CHECK_FALSE(worker.nccl.ready(two));
  CHECK_FALSE(worker.nccl.ready(worker.team.units));
  CHECK(worker.sum().error().code == GpuErrc::unavailable);
  library.hold(false);
  REQUIRE(worker.nccl.settled(std::chrono::steady_clock::now() + Worker::patience));
  CHECK(worker.nccl.ready(two));
  CHECK(worker.sum().has_value());
}

TEST_CASE("sets of GPUs have communicators of their own, up to a bound") {
  NcclDouble const library;
  Worker worker(8);
  for (std::size_t gpus = 0; gpus < NcclTeams::teams_max + 2; ++gpus) {
    std::vector<GpuUnit*> const two{worker.team.units[gpus % 8], worker.team.units[(gpus % 8 + 1 + gpus / 8) % 8]};
    static_cast<void>(worker.nccl.ready(two));
    REQUIRE(worker.nccl.settled(std::chrono::steady_clock::now() + Worker::patience));
    CHECK(worker.nccl.ready(two) == (gpus < NcclTeams::teams_max));
  }
  CHECK(library.open_communicators() == 2 * NcclTeams::teams_max);
}

namespace {

// Fills `size` bytes with a small number, in whole elements.
Bytes filled_with(unsigned value, Dtype dtype) {
  auto const element = element_bytes(dtype);
  Bytes bytes(size / element * element);
  auto const real = static_cast<double>(value);
  auto const single = static_cast<float>(value);
  for (std::size_t at = 0; at < bytes.size(); at += element) {
    auto* const to = bytes.data() + at;
    if (dtype == Dtype::f64)
      std::memcpy(to, &real, sizeof real);
    else if (dtype == Dtype::f32)
      std::memcpy(to, &single, sizeof single);
    else
      *to = static_cast<std::byte>(value);
  }
  return bytes;
}

// NVIDIA's library and the GPUs of this host, each with a tensor.
struct Real {
  explicit Real(std::shared_ptr<NcclLibrary const> library) : nccl(std::move(library), tell(said)) {
    for (std::size_t n = 0; n < gpus.size(); ++n) {
      units.push_back(&gpus[n]);
      tensors.push_back(place(n));
    }
  }
  Placed place(std::size_t n) {
    memory.push_back(gpus[n].acquire(size).value());
    return {&gpus[n], memory.back()->bytes().data()};
  }
  void put(Placed at, Bytes const& bytes) const { REQUIRE(at.unit->upload(at.data, bytes).has_value()); }
  [[nodiscard]] bool holds(Placed at, Bytes const& bytes) const {
    Bytes found(bytes.size());
    REQUIRE(at.unit->download(found, at.data).has_value());
    return found == bytes;
  }

  std::shared_ptr<Said> const said = std::make_shared<Said>();
  Gpus const gpus{find_gpus(), {.arena_bytes = 64 << 20}};
  std::vector<std::shared_ptr<GpuMemory>> memory;
  std::vector<GpuUnit*> units;
  std::vector<Placed> tensors;
  NcclTeams nccl;
};

}  // namespace

TEST_CASE("the host's own NCCL sums and spreads on the host's own GPUs") {
  auto const library = NcclLibrary::load();
  auto const why_none = find_gpus().why_none;
  if (library.has_error() || !why_none.empty()) {
    std::printf("skipped: %s\n", !why_none.empty() ? why_none.c_str() : library.error().detail.c_str());
    return;
  }
  Real real(*library);
  MESSAGE("NCCL " << (*library)->version() << " on " << real.gpus.size() << " GPUs");
  static_cast<void>(real.nccl.ready(real.units));
  REQUIRE(real.nccl.settled(std::chrono::steady_clock::now() + std::chrono::seconds(60)));
  REQUIRE_MESSAGE(real.nccl.ready(real.units), real.said->lines);
  auto const result = real.place(0);
  for (auto const dtype : all_dtypes)
    for (auto const op : all_reduce_ops) {
      if (!NcclTeams::has(op, dtype)) continue;
      INFO(std::string(name(op)), " of ", std::string(name(dtype)));
      for (auto const& tensor : real.tensors) real.put(tensor, filled_with(1, dtype));
      auto const reduced = real.nccl.reduce(op, dtype, real.tensors, result, size / element_bytes(dtype));
      REQUIRE_MESSAGE(reduced.has_value(), reduced.error().detail);
      CHECK(real.holds(result, filled_with(op == ReduceOp::sum ? static_cast<unsigned>(real.units.size()) : 1, dtype)));
    }
  auto const sent = random_floats(count, 9);
  real.put(result, sent);
  REQUIRE(real.nccl.broadcast(result, real.tensors, size).has_value());
  for (auto const& tensor : real.tensors) CHECK(real.holds(tensor, sent));
}
