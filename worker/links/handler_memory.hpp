// Memory for an Asio completion handler inside the object that waits, so that no wait allocates.
#pragma once

#include <array>
#include <boost/asio/bind_allocator.hpp>
#include <cstddef>
#include <new>
#include <utility>

namespace chorus::links {

// Holds one handler at a time; a second one, or a larger one, is allocated. Asio's own cache works only while the
// thread runs the executor, and a thread that polls a socket and then waits mostly does not. Outlives its handlers. One
// thread.
class HandlerMemory {
 public:
  HandlerMemory() = default;
  HandlerMemory(HandlerMemory const&) = delete;
  HandlerMemory& operator=(HandlerMemory const&) = delete;

  // Returns the handler with this memory as its allocator.
  template <class Handler>
  [[nodiscard]] auto bind(Handler handler) {
    return boost::asio::bind_allocator(Allocator<std::byte>(*this), std::move(handler));
  }

 private:
  template <class T>
  class Allocator {
   public:
    using value_type = T;
    explicit Allocator(HandlerMemory& memory) : memory_(&memory) {}
    template <class Other>
    Allocator(Allocator<Other> const& other) : memory_(other.memory_) {}
    [[nodiscard]] T* allocate(std::size_t count) {
      static_assert(alignof(T) <= alignof(std::max_align_t));
      return static_cast<T*>(memory_->allocate(count * sizeof(T)));
    }
    void deallocate(T* at, std::size_t) { memory_->deallocate(at); }
    friend bool operator==(Allocator const&, Allocator const&) = default;

   private:
    template <class Other>
    friend class Allocator;
    HandlerMemory* memory_;
  };

  void* allocate(std::size_t bytes) {
    if (bytes > memory_.size() || std::exchange(is_taken_, true)) return ::operator new(bytes);
    return memory_.data();
  }
  void deallocate(void* at) {
    if (at != memory_.data()) return ::operator delete(at);
    is_taken_ = false;
  }

  alignas(std::max_align_t) std::array<std::byte, 256> memory_;
  bool is_taken_ = false;
};

}  // namespace chorus::links
