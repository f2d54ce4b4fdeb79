// What the GPUs of this host make of the reductions, beside what a copy on the device does: one JSON object per line.
// Without a GPU it says why, and ends with status 77.
//
//   gpu_bandwidth               every figure below
//   gpu_bandwidth --open UUID HANDLE BYTES FIRST   (itself, as the other process of the last figure)
//   gpu_bandwidth --lose        has a kernel read where there is no memory: what is said then, and from then on
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"

namespace {

using namespace chorus;
using namespace chorus::devices;

constexpr std::uint64_t operand_bytes = 256 << 20;
constexpr std::uint64_t shard_bytes = 64 << 20;
constexpr int rounds = 20;

double seconds_of(GpuSession& session, std::function<Status()> const& queue) {
  auto best = 1e9;
  for (int round = 0; round < rounds + 2; ++round) {
    auto const before = session.use().compute_seconds;
    queue().value();
    auto const mark = session.mark(Lane::compute).value();
    if (!wait_for(session, mark, std::chrono::steady_clock::now() + std::chrono::seconds(30)).value()) std::exit(1);
    auto const took = session.use().compute_seconds - before;
    if (round >= 2) best = std::min(best, took);  // the first ones wake the device
  }
  return best;
}

std::string hex(IpcHandle const& handle) {
  std::string text;
  for (auto const byte : handle) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
    text += digits;
  }
  return text;
}

// The bytes moved by a step of adam over f32: values, gradient and two moments are read, all but the gradient written.
void measure_step(GpuUnit& unit) {
  std::vector<std::shared_ptr<GpuMemory>> memory;
  for (int i = 0; i < 4; ++i) memory.push_back(unit.acquire(shard_bytes).value());
  std::vector<std::byte> const zeros(shard_bytes);
  for (auto const& block : memory) unit.upload(block->bytes().data(), zeros).value();
  auto const at = [&](std::size_t i) { return memory[i]->bytes().data(); };
  auto const session = unit.gpu().session().value();
  auto const copy_s = seconds_of(*session, [&] { return session->copy(Lane::compute, at(0), at(1), shard_bytes); });
  StepOrder order;
  order.method = StepMethod::adam;
  order.values = at(0);
  order.gradient = at(1);
  order.first = at(2);
  order.second = at(3);
  order.elements = shard_bytes / sizeof(float);
  order.scalars = {0.01, 0.9, 0.999, 0.1, 0.001, 1, 1e-8, 0, 1, 0};
  auto const s = seconds_of(*session, [&] { return session->step(order); });
  auto const rate = 7.0 * shard_bytes / s, copy_rate = 2.0 * shard_bytes / copy_s;
  std::printf(
      "{\"figure\":\"step\",\"optimizer\":\"adam\",\"dtype\":\"f32\",\"bytes\":%llu,\"seconds\":%.9f,\"GBps\":%.1f,"
      "\"of_copy\":%.3f}\n",
      static_cast<unsigned long long>(shard_bytes), s, rate / 1e9, rate / copy_rate);
}

// The bytes moved by a reduction: every operand read once, the result written once.
void measure(GpuUnit& unit) {
  constexpr std::size_t sources_max = 8;
  std::vector<std::shared_ptr<GpuMemory>> memory;
  std::vector<std::byte const*> sources;
  for (std::size_t i = 0; i <= sources_max; ++i) memory.push_back(unit.acquire(operand_bytes).value());
  for (auto const& block : memory) sources.push_back(block->bytes().data());
  auto* const destination = memory.back()->bytes().data();
  auto const session = unit.gpu().session().value();
  auto const copy_s =
      seconds_of(*session, [&] { return session->copy(Lane::compute, destination, sources[0], operand_bytes); });
  auto const copy_rate = 2.0 * operand_bytes / copy_s;
  std::printf("{\"gpu\":\"%s\",\"figure\":\"copy\",\"bytes\":%llu,\"seconds\":%.9f,\"GBps\":%.1f}\n",
              unit.gpu().info().name.c_str(), static_cast<unsigned long long>(operand_bytes), copy_s, copy_rate / 1e9);
  for (auto const dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f64, Dtype::i32, Dtype::u8})
    for (std::size_t const count : {2, 8}) {
      auto const elements = operand_bytes / element_bytes(dtype);
      auto const s = seconds_of(*session, [&] {
        return session->fold(ReduceOp::sum, dtype, {sources.data(), count, &destination, 1, elements, false}, {});
      });
      auto const rate = static_cast<double>(count + 1) * operand_bytes / s;
      std::printf(
          "{\"figure\":\"sum\",\"dtype\":\"%s\",\"sources\":%zu,\"seconds\":%.9f,\"GBps\":%.1f,\"of_copy\":%.3f}\n",
          std::string(name(dtype)).c_str(), count, s, rate / 1e9, rate / copy_rate);
    }
}

// The copy engines alone: pieces of pinned memory in turn, in, out, and both at the same time.
void measure_copies(GpuUnit& unit) {
  constexpr std::uint64_t total = 1 << 30;
  std::vector<PinnedSlot> slots;
  for (int i = 0; i < 16; ++i) slots.push_back(unit.pinned().take().value());
  auto const in_memory = unit.acquire(shard_bytes).value(), out_memory = unit.acquire(shard_bytes).value();
  auto const session = unit.gpu().session().value();
  auto const queue = [&](Lane lane, std::uint64_t at, std::uint64_t piece) {
    auto const pieces_of_slot = PinnedPool::slot_bytes / piece;
    auto const n = at / piece;
    auto const half = slots.size() / 2;
    auto* const pinned =
        slots[n / pieces_of_slot % half + (lane == Lane::out ? half : 0)].bytes().data() + n % pieces_of_slot * piece;
    if (lane == Lane::in) return session->copy(lane, in_memory->bytes().data() + at % shard_bytes, pinned, piece);
    return session->copy(lane, pinned, out_memory->bytes().data() + at % shard_bytes, piece);
  };
  struct Kind {
    char const* name;
    std::vector<Lane> lanes;
  };
  for (auto const& [name, lanes] :
       {Kind{"in", {Lane::in}}, Kind{"out", {Lane::out}}, Kind{"both", {Lane::in, Lane::out}}})
    for (std::uint64_t const piece : {64 << 10, 256 << 10, 1 << 20}) {
      std::vector<double> took;
      for (int round = 0; round < 5; ++round) {
        auto const begin = std::chrono::steady_clock::now();
        for (std::uint64_t at = 0; at < total; at += piece)
          for (auto const lane : lanes) queue(lane, at, piece).value();
        for (auto const lane : lanes)
          if (!wait_for(*session, session->mark(lane).value(), begin + std::chrono::seconds(30)).value()) std::exit(1);
        took.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      }
      std::sort(took.begin(), took.end());
      std::printf("{\"figure\":\"pinned\",\"direction\":\"%s\",\"piece\":%llu,\"GBps_each_way\":%.2f}\n", name,
                  static_cast<unsigned long long>(piece), total / took[took.size() / 2] / 1e9);
    }
}

// A kernel reads where there is nothing. The context is lost with that, so this is all that the process does.
int lose(GpuUnit& unit) {
  auto const memory = unit.acquire(4096).value();
  auto* const destination = memory->bytes().data();
  auto* const nowhere = reinterpret_cast<std::byte const*>(std::uintptr_t{1} << 20);
  auto const failed = unit.fold(ReduceOp::sum, Dtype::f32, {&nowhere, 1, &destination, 1, 1024, false});
  auto const after = unit.upload(destination, std::vector<std::byte>(64));
  std::printf("{\"figure\":\"lost\",\"is_lost\":%s,\"why\":\"%s\",\"after\":\"%s\"}\n", unit.lost() ? "true" : "false",
              failed ? "" : failed.error().detail.c_str(), after ? "" : after.error().detail.c_str());
  return unit.lost() && !after ? 0 : 1;
}

// Another process maps the arena and looks at its first byte.
bool share(GpuUnit& unit, char const* self) {
  auto const arena = unit.arena().value();
  std::vector<std::byte> const first(64, std::byte{42});
  auto const block = unit.acquire(first.size()).value();
  unit.upload(block->bytes().data(), first).value();
  auto const handle = unit.gpu().share(arena->bytes().data());
  if (!handle) {
    std::printf("{\"figure\":\"ipc\",\"refused\":\"%s\"}\n", handle.error().detail.c_str());
    return true;
  }
  auto const offset = block->bytes().data() - arena->bytes().data();
  auto const command = std::string(self) + " --open " + unit.gpu().info().uuid + " " + hex(*handle) + " " +
                       std::to_string(arena->bytes().size()) + " " + std::to_string(offset);
  std::fflush(stdout);
  return std::system(command.c_str()) == 0;
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int open_shared(Gpus const& gpus, char const* const* argv) {
  auto* const unit = gpus.find(std::string_view(argv[2]));
  if (unit == nullptr) return 1;
  IpcHandle handle{};
  std::string_view const text(argv[3]);
  for (std::size_t i = 0; i < handle.size() && 2 * i + 2 <= text.size(); ++i) {
    unsigned value = 0;
    std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, value, 16);
    handle[i] = static_cast<std::byte>(value);
  }
  auto const bytes = number(argv[4]);
  bool const refuses_more = unit->gpu().open(handle, bytes * 2).has_error();
  auto const opened = unit->gpu().open(handle, bytes);
  if (!opened) {
    std::printf("{\"figure\":\"ipc\",\"refused\":\"%s\"}\n", opened.error().detail.c_str());
    return 0;
  }
  std::vector<std::byte> found(64);
  unit->download(found, *opened + number(argv[5])).value();
  bool const right = std::all_of(found.begin(), found.end(), [](std::byte b) { return b == std::byte{42}; });
  std::printf("{\"figure\":\"ipc\",\"right\":%s,\"refuses_what_is_not_there\":%s}\n", right ? "true" : "false",
              refuses_more ? "true" : "false");
  unit->gpu().close(*opened);
  return right && refuses_more ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Gpus const gpus(find_gpus(), {.arena_bytes = 10 * operand_bytes});
  if (gpus.size() == 0) {
    std::printf("skipped: %s\n", gpus.why_none().c_str());
    return 77;
  }
  if (argc == 2 && std::string_view(argv[1]) == "--lose") return lose(gpus[0]);
  if (argc == 6 && std::string_view(argv[1]) == "--open") return open_shared(gpus, argv);
  bool good = true;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    measure(gpus[i]);
    measure_step(gpus[i]);
    measure_copies(gpus[i]);
    good = share(gpus[i], argv[0]) && good;
  }
  return good ? 0 : 1;
}
