// What a server of values cannot do without, and nothing else: bytes come and go through a socket, and are added to
// others, if it is to do what a push does.
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <vector>

#include "unpaced.h"

namespace bare {

[[noreturn]] inline void give_up(char const* what) {
  std::perror(what);
  std::exit(1);
}

// What the client uses for any of them, and the bare server: short messages leave at once, of what is accepted too.
inline int new_socket() {
  auto const handle = unpaced_socket();
  int const one = 1;
  ::setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return handle;
}

inline void send_all(int handle, std::string_view head, char const* body, std::size_t bytes) {
  while (!head.empty() || bytes > 0) {
    iovec parts[]{{const_cast<char*>(head.data()), head.size()}, {const_cast<char*>(body), bytes}};
    auto const sent = ::writev(handle, parts, 2);
    if (sent <= 0) give_up("send");
    auto const of_head = std::min(static_cast<std::size_t>(sent), head.size());
    head.remove_prefix(of_head);
    body += static_cast<std::size_t>(sent) - of_head;
    bytes -= static_cast<std::size_t>(sent) - of_head;
  }
}

// What becomes of the bytes that are brought: f32, a multiple of four bytes.
enum class Work {
  none,
  added_after,  // to others in place, when all are there: what is brought may be cut short until then
  added_while,  // as they come, into a second array, which takes the place of the first when all are there
};

// In huge pages, where the system has them; zeros. Never given back: the server ends with its process.
inline float* make_array(std::size_t elements) {
  auto const bytes = std::max<std::size_t>(elements, 1) * sizeof(float);
  auto* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("mmap");
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  auto* const array = static_cast<float*>(memory);
  std::fill_n(array, elements, 0.0F);
  return array;
}

// Adds f32 to f32 with all cores: slices are taken in turn, each as soon as it has arrived.
class Adders {
 public:
  Adders(std::size_t elements, Work work)
      : work_(work),
        elements_(elements),
        values_(make_array(elements)),
        next_(make_array(elements)),
        brought_(make_array(elements)) {
    if (work == Work::none) return;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) helpers_.emplace_back([this] { help(); });
  }
  Adders(Adders const&) = delete;
  Adders& operator=(Adders const&) = delete;

  [[nodiscard]] char* room() { return reinterpret_cast<char*>(brought_); }
  // Of the bytes, in the order in which they come; all of them at last.
  void arrived(std::size_t bytes) {
    auto const elements = bytes / sizeof(float);
    if (work_ == Work::none || (work_ == Work::added_after && elements < elements_)) return;
    if (arrived_.exchange(elements) == 0) arrived_.notify_all();
  }
  // After that: until all are added.
  void finish() {
    if (work_ == Work::none) return;
    while (add_a_slice()) {}
    while (added_.load() < elements_) __builtin_ia32_pause();
    if (work_ == Work::added_while) std::swap(values_, next_);
    arrived_.store(0);
    added_.store(0);
    taken_.store(0);
  }

 private:
  static constexpr std::size_t slice = 65536;

  bool add_a_slice() {
    if (taken_.load() >= elements_) return false;
    auto const first = taken_.fetch_add(slice);
    if (first >= elements_) return false;
    auto const last = std::min(first + slice, elements_);
    while (arrived_.load() < last) __builtin_ia32_pause();
    auto* const target = work_ == Work::added_while ? next_ : values_;
    for (auto i = first; i < last; ++i) target[i] = values_[i] + brought_[i];
    added_.fetch_add(last - first);
    return true;
  }
  [[noreturn]] void help() {
    for (;;) {
      arrived_.wait(0);
      if (!add_a_slice()) std::this_thread::yield();
    }
  }

  Work const work_;
  std::size_t const elements_;
  float *values_, *next_;
  float* const brought_;
  std::atomic<std::size_t> arrived_ = 0, taken_ = 0, added_ = 0;
  std::vector<std::thread> helpers_;
};

// 'g' asks for the bytes, 'p' brings them and is answered with one.
[[noreturn]] inline void serve(int listener, std::size_t bytes, Work work) {
  std::vector<char> const memory(std::max<std::size_t>(bytes, 1), 'x');
  Adders adders(bytes / sizeof(float), work);
  for (;;) {
    auto const handle = ::accept(listener, nullptr, nullptr);
    if (handle < 0) give_up("accept");
    char command = 0;
    while (::recv(handle, &command, 1, 0) == 1) {
      if (command == 'g') {
        send_all(handle, "", memory.data(), bytes);
        continue;
      }
      for (std::size_t got = 0; got < bytes;) {
        auto const part = ::recv(handle, adders.room() + got, bytes - got, 0);
        if (part <= 0) std::exit(0);
        got += static_cast<std::size_t>(part);
        adders.arrived(got);
      }
      adders.finish();
      send_all(handle, "k", nullptr, 0);
    }
    ::close(handle);
  }
}

}  // namespace bare
