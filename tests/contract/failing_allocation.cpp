// Preloaded into a service: a request with "Fail-Allocation: 12" finds that there is no memory when the service
// allocates for the twelfth time after having read it. So a service is brought to say 500 without a hook of its own.
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

namespace {

// Of this thread: the allocations until the one that fails; 0: none does.
thread_local unsigned long allocations_left = 0;

template <class Function>
Function* next(char const* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

void look_for_order(void const* bytes, ssize_t count) {
  constexpr std::string_view order = "Fail-Allocation: ";
  if (count <= 0) return;
  std::string_view const text(static_cast<char const*>(bytes), static_cast<std::size_t>(count));
  auto const at = text.find(order);
  if (at == std::string_view::npos) return;
  allocations_left = 0;
  for (auto const digit : text.substr(at + order.size())) {
    if (digit < '0' || digit > '9') break;
    allocations_left = 10 * allocations_left + static_cast<unsigned long>(digit - '0');
  }
}

bool fails_now() { return allocations_left != 0 && --allocations_left == 0; }

}  // namespace

extern "C" {

ssize_t recv(int socket, void* bytes, size_t size, int flags) {
  static auto* const real = next<decltype(recv)>("recv");
  auto const count = real(socket, bytes, size, flags);
  look_for_order(bytes, count);
  return count;
}

ssize_t recvmsg(int socket, msghdr* message, int flags) {
  static auto* const real = next<decltype(recvmsg)>("recvmsg");
  auto const count = real(socket, message, flags);
  if (message->msg_iovlen == 1) look_for_order(message->msg_iov[0].iov_base, count);
  return count;
}

ssize_t sendmsg(int socket, msghdr const* message, int flags) {
  static auto* const real = next<decltype(sendmsg)>("sendmsg");
  allocations_left = 0;
  return real(socket, message, flags);
}

// The thread has come to wait for something: what it does next is no longer the handler's beginning.
int epoll_wait(int epoll, epoll_event* events, int most, int timeout) {
  static auto* const real = next<decltype(epoll_wait)>("epoll_wait");
  if (timeout != 0) allocations_left = 0;
  return real(epoll, events, most, timeout);
}

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  static auto* const real = next<void*(size_t, size_t)>("aligned_alloc");
  return fails_now() ? nullptr : real(alignment, size);
}
}

void* operator new(std::size_t size) {
  void* const memory = fails_now() ? nullptr : std::malloc(size != 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
