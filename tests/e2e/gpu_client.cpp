// A client program with floats on a GPU, which it shares by their IPC handle: gpu_client COUNT VALUE
//
// The program prints the handle in base64. SIGUSR1: prints "all VALUE", or "mixed", for the present values. SIGUSR2:
// frees the memory and prints "freed". SIGTERM: ends.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/devices/cuda/testing/handle_text.hpp"

using namespace chorus::devices;

namespace {

void say(std::string const& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

std::string found(GpuUnit& unit, std::byte const* memory, std::size_t count) {
  std::vector<float> values(count);
  unit.download(std::as_writable_bytes(std::span(values)), memory).value();
  bool const are_same = std::all_of(values.begin(), values.end(), [&](float v) { return v == values.front(); });
  return are_same ? "all " + std::to_string(static_cast<long>(values.front())) : "mixed";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  sigset_t signals;
  sigemptyset(&signals);
  for (int const number : {SIGUSR1, SIGUSR2, SIGTERM}) sigaddset(&signals, number);
  auto const count = std::strtoull(argv[1], nullptr, 10);
  auto const value = std::strtof(argv[2], nullptr);
  Gpus const gpus(find_gpus(), {});
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  auto& unit = *gpus.find(0U).value();
  auto* memory = unit.gpu().allocate(count * sizeof(float)).value();
  std::vector<float> const values(count, value);
  unit.upload(memory, std::as_bytes(std::span(values))).value();
  say(testing::in_base64(unit.gpu().share(memory).value()));
  for (int number = 0; sigwait(&signals, &number) == 0 && number != SIGTERM;) {
    if (number == SIGUSR1) say(found(unit, memory, count));
    if (number == SIGUSR2) {
      unit.gpu().free(memory);
      say("freed");
    }
  }
}
