// What a GPU's memory, pinned memory and one TCP connection allow, without Chorus: one process copies a vector from the
// GPU in blocks and sends them, another one receives them and copies them to the same GPU, each with a few blocks of
// pinned memory, blocking calls, and nothing else to do.
//
//   bare_staged [BYTES [BLOCK_BYTES [BLOCKS]]]   64 MiB, 1 MiB, 4; a JSON object with the median of 40 turns
#include <cuda_runtime_api.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tests/bench/peers/unpaced.h"

namespace {

constexpr int turns = 40;

void check(bool is_well, char const* doing) {
  if (is_well) return;
  std::fprintf(stderr, "bare_staged: %s\n", doing);
  std::exit(1);
}
void check(cudaError_t error, char const* doing) {
  if (error != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  check(error == cudaSuccess, doing);
}

struct Vector {
  Vector(std::uint64_t size, std::uint64_t block_size, std::size_t count_of_blocks)
      : bytes(size), block_bytes(block_size), blocks(count_of_blocks) {}

  std::uint64_t const bytes, block_bytes;
  std::size_t const blocks;
  char* on_device = nullptr;
  std::vector<char*> pinned;
  std::vector<cudaEvent_t> copied;
  cudaStream_t stream = nullptr;

  void lie_on_gpu() {
    check(cudaMalloc(reinterpret_cast<void**>(&on_device), bytes), "cudaMalloc");
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    pinned.resize(blocks);
    copied.resize(blocks);
    for (std::size_t i = 0; i < blocks; ++i) {
      check(cudaHostAlloc(reinterpret_cast<void**>(&pinned[i]), block_bytes, cudaHostAllocDefault), "cudaHostAlloc");
      check(cudaEventCreateWithFlags(&copied[i], cudaEventDisableTiming), "cudaEventCreate");
    }
  }
  [[nodiscard]] std::uint64_t count() const { return (bytes + block_bytes - 1) / block_bytes; }
  [[nodiscard]] std::uint64_t size(std::uint64_t n) const { return std::min(block_bytes, bytes - n * block_bytes); }

  void copy(std::uint64_t n, cudaMemcpyKind way) {
    auto* const here = pinned[n % blocks];
    auto* const there = on_device + n * block_bytes;
    bool const out = way == cudaMemcpyDeviceToHost;
    check(cudaMemcpyAsync(out ? here : there, out ? there : here, size(n), way, stream), "cudaMemcpyAsync");
    check(cudaEventRecord(copied[n % blocks], stream), "cudaEventRecord");
  }
  void wait(std::uint64_t n) {
    auto reached = cudaErrorNotReady;
    while (reached == cudaErrorNotReady) reached = cudaEventQuery(copied[n % blocks]);
    check(reached, "cudaEventQuery");
  }
};

void send_vector(int socket, Vector& vector) {
  auto const count = vector.count();
  for (std::uint64_t n = 0; n < std::min<std::uint64_t>(vector.blocks, count); ++n)
    vector.copy(n, cudaMemcpyDeviceToHost);
  for (std::uint64_t n = 0; n < count; ++n) {
    vector.wait(n);
    for (std::uint64_t at = 0; at < vector.size(n);) {
      auto const sent = ::send(socket, vector.pinned[n % vector.blocks] + at, vector.size(n) - at, 0);
      check(sent > 0, "send");
      at += static_cast<std::uint64_t>(sent);
    }
    if (n + vector.blocks < count) vector.copy(n + vector.blocks, cudaMemcpyDeviceToHost);
  }
}

void receive_vector(int socket, Vector& vector) {
  auto const count = vector.count();
  for (std::uint64_t n = 0; n < count; ++n) {
    if (n >= vector.blocks) vector.wait(n);
    for (std::uint64_t at = 0; at < vector.size(n);) {
      auto const received = ::recv(socket, vector.pinned[n % vector.blocks] + at, vector.size(n) - at, 0);
      check(received > 0, "recv");
      at += static_cast<std::uint64_t>(received);
    }
    vector.copy(n, cudaMemcpyHostToDevice);
  }
  for (std::uint64_t n = count - std::min<std::uint64_t>(vector.blocks, count); n < count; ++n) vector.wait(n);
}

}  // namespace

int main(int argc, char** argv) {
  auto const number = [&](int i, std::uint64_t otherwise) {
    if (argc <= i) return otherwise;
    std::string_view const text(argv[i]);
    std::uint64_t value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check(error == std::errc() && end == text.data() + text.size() && value > 0, "a number of bytes or blocks above 0");
    return value;
  };
  Vector vector(number(1, 64 << 20), number(2, 1 << 20), number(3, 4));
  auto const listener = unpaced_socket();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  check(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "bind");
  check(listen(listener, 1) == 0, "listen");
  check(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  auto const child = fork();
  check(child >= 0, "fork");
  char byte = 0;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto const socket = unpaced_socket();
    check(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connect");
    vector.lie_on_gpu();
    for (int turn = 0; turn < turns; ++turn) {
      receive_vector(socket, vector);
      check(::send(socket, &byte, 1, 0) == 1, "send");
    }
    _exit(0);
  }
  auto const socket = accept(listener, nullptr, nullptr);
  check(socket >= 0, "accept");
  vector.lie_on_gpu();
  std::vector<double> seconds;
  for (int turn = 0; turn < turns; ++turn) {
    auto const begin = std::chrono::steady_clock::now();
    send_vector(socket, vector);
    check(::recv(socket, &byte, 1, 0) == 1, "recv");
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  waitpid(child, nullptr, 0);
  std::ranges::nth_element(seconds, seconds.begin() + turns / 2);
  std::printf(R"({"figure":"bare_staged","bytes":%llu,"block_bytes":%llu,"blocks":%zu,"p50_us":%.1f})"
              "\n",
              static_cast<unsigned long long>(vector.bytes), static_cast<unsigned long long>(vector.block_bytes),
              vector.blocks, seconds[turns / 2] * 1e6);
}
