// A child process of a test: started with arguments, its standard output read, ended by its owner.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace chorus::testing {

// Calls `condition` until it holds or the time is over, for events that can only be polled. True if it held.
template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit = std::chrono::seconds(10));
void pause_briefly();

class Process {
 public:
  // arguments[0] is the program. The child writes to the test's standard error, unless CHORUS_TEST_QUIET is set.
  explicit Process(std::vector<std::string> arguments);
  ~Process();  // kills and reaps
  Process(Process const&) = delete;
  Process& operator=(Process const&) = delete;
  Process(Process&& other) noexcept;

  // Returns the next line of standard output, without its end. Throws std::runtime_error after the limit or at the end.
  std::string read_line(std::chrono::milliseconds limit = std::chrono::seconds(20));
  std::string read_all(std::chrono::milliseconds limit = std::chrono::seconds(120));  // to the end of the output

  void signal(int number) const;
  int wait(std::chrono::milliseconds limit = std::chrono::seconds(20));  // exit status; 128 + signal if it was killed
  [[nodiscard]] bool has_ended() const;                                  // does not reap the process
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);

  pid_t pid_ = -1;
  int output_ = -1;
  std::string buffered_;
};

// True if this test, or the programs that it starts, may be built with a sanitizer, which keeps freed memory and takes
// time: memory use and times of a process are meaningless then.
bool under_sanitizer();

// Returns the number in an environment variable that sets repetitions or the seed of a test.
std::uint64_t number_from_environment(char const* variable, std::uint64_t otherwise);

// Returns build/<preset>/bin/NAME of the build that this test belongs to.
std::string binary(std::string const& name);

template <class Condition>
bool eventually(Condition condition, std::chrono::milliseconds limit) {
  auto const deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    pause_briefly();
  }
  return true;
}

}  // namespace chorus::testing
