// Threads that wait for a call while the interpreter ends.
#pragma once

#include <unistd.h>

#include <atomic>
#include <thread>

namespace chorus::process_group {

// The end of the program ends all calls, and so wakes threads of Python that wait for one. An interpreter that ends has
// such a thread exit where it asks for the lock, in a destructor, which C++ answers by ending the process. So it stays.
class InterpreterEnd {
 public:
  // By the thread that ends the interpreter, before it ends calls.
  static void begin() {
    ending_ = std::this_thread::get_id();
    has_begun_.store(true);
  }

  InterpreterEnd() = default;
  ~InterpreterEnd() {
    while (has_begun_.load() && std::this_thread::get_id() != ending_) ::pause();
  }
  InterpreterEnd(InterpreterEnd const&) = delete;
  InterpreterEnd& operator=(InterpreterEnd const&) = delete;

 private:
  static inline std::thread::id ending_;
  static inline std::atomic<bool> has_begun_{false};
};

}  // namespace chorus::process_group
