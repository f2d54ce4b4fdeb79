// What a GPU's memory, pinned memory and one TCP connection allow, without Chorus: two processes of one GPU send each
// other a vector in blocks, each with a few blocks of pinned memory, blocking calls, and nothing else to do.
//
//   bare_staged [BYTES [BLOCK_BYTES [BLOCKS]]]   64 MiB, 2 MiB, 4
//
// One JSON object for each, with the median of 40 turns: one way and both ways, each
//   link      with no copies at all: the connection alone, between these blocks
//   beside    with copies of as many bytes at the same time, of blocks that do not go over the connection and that
//             nobody waits for: what the copy engine takes from the connection by being at work
//   through   from the GPU into blocks, over the connection, and from blocks to the GPU
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
#include <cstring>
#include <string_view>
#include <thread>
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

enum class Copies { none, beside, through };

constexpr std::string_view name(Copies copies) {
  return copies == Copies::none ? "link" : copies == Copies::beside ? "beside" : "through";
}

struct Sizes {
  std::uint64_t bytes, block_bytes;
  std::size_t blocks;

  [[nodiscard]] std::uint64_t count() const { return (bytes + block_bytes - 1) / block_bytes; }
  [[nodiscard]] std::uint64_t size(std::uint64_t n) const { return std::min(block_bytes, bytes - n * block_bytes); }
};

// A vector that goes or comes, and its blocks.
class Vector {
 public:
  explicit Vector(Sizes const& sizes) : sizes_(sizes) {
    check(cudaMalloc(reinterpret_cast<void**>(&on_device_), sizes.bytes), "cudaMalloc");
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    for (std::size_t i = 0; i < sizes.blocks; ++i) {
      blocks_.push_back(pinned());
      others_.push_back(pinned());
      check(cudaEventCreateWithFlags(&copied_.emplace_back(), cudaEventDisableTiming), "cudaEventCreate");
    }
  }
  Vector(Vector const&) = delete;
  Vector& operator=(Vector const&) = delete;

  void send_over(int socket, Copies copies) {
    auto const count = sizes_.count();
    if (copies == Copies::through)
      for (std::uint64_t n = 0; n < std::min<std::uint64_t>(sizes_.blocks, count); ++n) copy_out(n, blocks_);
    for (std::uint64_t n = 0; n < count; ++n) {
      if (copies == Copies::through) wait(n);
      if (copies == Copies::beside) copy_out(n, others_);
      for (std::uint64_t at = 0; at < sizes_.size(n);) {
        auto const sent = ::send(socket, blocks_[n % sizes_.blocks] + at, sizes_.size(n) - at, 0);
        check(sent > 0, "send");
        at += static_cast<std::uint64_t>(sent);
      }
      if (copies == Copies::through && n + sizes_.blocks < count) copy_out(n + sizes_.blocks, blocks_);
    }
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  void receive_from(int socket, Copies copies) {
    for (std::uint64_t n = 0; n < sizes_.count(); ++n) {
      if (copies == Copies::through && n >= sizes_.blocks) wait(n);
      for (std::uint64_t at = 0; at < sizes_.size(n);) {
        auto const received = ::recv(socket, blocks_[n % sizes_.blocks] + at, sizes_.size(n) - at, 0);
        check(received > 0, "recv");
        at += static_cast<std::uint64_t>(received);
      }
      if (copies != Copies::none) copy_in(n, copies == Copies::through ? blocks_ : others_);
    }
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

 private:
  [[nodiscard]] char* pinned() const {
    void* block = nullptr;
    check(cudaHostAlloc(&block, sizes_.block_bytes, cudaHostAllocDefault), "cudaHostAlloc");
    std::memset(block, 1, sizes_.block_bytes);
    return static_cast<char*>(block);
  }
  void copy_out(std::uint64_t n, std::vector<char*> const& to) {
    copy(n, to[n % sizes_.blocks], on_device_ + n * sizes_.block_bytes, cudaMemcpyDeviceToHost);
  }
  void copy_in(std::uint64_t n, std::vector<char*> const& from) {
    copy(n, on_device_ + n * sizes_.block_bytes, from[n % sizes_.blocks], cudaMemcpyHostToDevice);
  }
  void copy(std::uint64_t n, char* to, char const* from, cudaMemcpyKind way) {
    check(cudaMemcpyAsync(to, from, sizes_.size(n), way, stream_), "cudaMemcpyAsync");
    check(cudaEventRecord(copied_[n % sizes_.blocks], stream_), "cudaEventRecord");
  }
  void wait(std::uint64_t n) {
    auto reached = cudaErrorNotReady;
    while (reached == cudaErrorNotReady) reached = cudaEventQuery(copied_[n % sizes_.blocks]);
    check(reached, "cudaEventQuery");
  }

  Sizes const sizes_;
  char* on_device_ = nullptr;
  std::vector<char*> blocks_, others_;
  std::vector<cudaEvent_t> copied_;
  cudaStream_t stream_ = nullptr;
};

// Both have come here when one goes on.
void meet(int socket) {
  char byte = 0;
  check(::send(socket, &byte, 1, 0) == 1, "send");
  check(::recv(socket, &byte, 1, 0) == 1, "recv");
}

// Microseconds, of whoever sends if it is one way only.
double median(int socket, Vector& going, Vector& coming, Copies copies, bool sends, bool receives) {
  std::vector<double> seconds;
  for (int turn = 0; turn < turns; ++turn) {
    meet(socket);
    auto const begin = std::chrono::steady_clock::now();
    std::thread receiver;
    if (sends && receives) receiver = std::thread([&] { coming.receive_from(socket, copies); });
    if (sends) going.send_over(socket, copies);
    if (receives && !sends) coming.receive_from(socket, copies);
    if (receiver.joinable()) receiver.join();
    meet(socket);
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + turns / 2);
  return seconds[turns / 2] * 1e6;
}

void take_turns(int socket, Sizes const& sizes, bool is_first) {
  Vector going(sizes), coming(sizes);
  for (bool const both : {false, true})
    for (auto const copies : {Copies::none, Copies::beside, Copies::through}) {
      auto const us = median(socket, going, coming, copies, is_first || both, !is_first || both);
      if (!is_first) continue;
      std::printf(
          R"({"figure":"bare_staged","copies":"%s","ways":%d,"bytes":%llu,"block_bytes":%llu,"blocks":%zu,"p50_us":%.1f})"
          "\n",
          name(copies).data(), both ? 2 : 1, static_cast<unsigned long long>(sizes.bytes),
          static_cast<unsigned long long>(sizes.block_bytes), sizes.blocks, us);
    }
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
  Sizes const sizes{number(1, 64 << 20), number(2, 2 << 20), number(3, 4)};
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
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto const socket = unpaced_socket();
    check(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connect");
    take_turns(socket, sizes, false);
    _exit(0);
  }
  auto const socket = accept(listener, nullptr, nullptr);
  check(socket >= 0, "accept");
  take_turns(socket, sizes, true);
  std::fflush(stdout);
  waitpid(child, nullptr, 0);
}
