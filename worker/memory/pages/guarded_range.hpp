// The address range of a slot of BusGuard, which a signal handler reads while other threads change it.
#pragma once

#include <atomic>
#include <cstdint>

namespace chorus::memory {

// ThreadSanitizer's runtime may fault while it performs an atomic access and holds a lock of its own. A signal handler
// that then enters the runtime, by an atomic or mmap(), deadlocks. So the handler's functions are not instrumented.
#ifdef __clang__
#define CHORUS_NOT_INSTRUMENTED __attribute__((disable_sanitizer_instrumentation))
#else
#define CHORUS_NOT_INSTRUMENTED
#endif

template <class T>
CHORUS_NOT_INSTRUMENTED T* unseen(std::atomic<T>& value) {
  static_assert(sizeof(value) == sizeof(T) && std::atomic<T>::is_always_lock_free);
  return reinterpret_cast<T*>(&value);
}

// One thread at a time changes the range; any thread reads it. The protocol is a sequence lock.
class GuardedRange {
 public:
  void set(std::uintptr_t begin, std::uintptr_t end) {  // after clear(), or the first time
    begin_ = begin;
    end_ = end;
    ++changes_;
  }
  void clear() { ++changes_; }

  // Returns false if there is no range, or if it is changing. A changing range does not contain an address that the
  // calling thread is reading: its owner would keep it until then. Never returns the begin of one range with the end of
  // another. Safe in a signal handler.
  CHORUS_NOT_INSTRUMENTED bool read(std::uintptr_t& begin, std::uintptr_t& end) {
    auto const before = __atomic_load_n(unseen(changes_), __ATOMIC_ACQUIRE);
    if (before % 2 == 0) return false;
    begin = __atomic_load_n(unseen(begin_), __ATOMIC_ACQUIRE);
    end = __atomic_load_n(unseen(end_), __ATOMIC_ACQUIRE);
    // A thread that sees begin or end of a later range also sees the changes of changes_ before it.
    return __atomic_load_n(unseen(changes_), __ATOMIC_ACQUIRE) == before;
  }

 private:
  std::atomic<std::uint64_t> changes_{0};  // odd: there is a range
  std::atomic<std::uintptr_t> begin_{0}, end_{0};
};

}  // namespace chorus::memory
