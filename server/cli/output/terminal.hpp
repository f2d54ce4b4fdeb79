// The terminal for a live view.
#pragma once

#include <signal.h>
#include <termios.h>

#include <chrono>
#include <cstddef>
#include <optional>

namespace chorus::cli {

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
  bool operator==(ScreenSize const&) const = default;
};

// During its life, keys are read one by one without an echo, and the view has its own screen. Afterwards the terminal
// is restored, also when a signal asks the program to end. Standard input and output are a terminal. Used by the only
// thread.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(LiveScreen const&) = delete;
  LiveScreen& operator=(LiveScreen const&) = delete;

  [[nodiscard]] static bool is_possible();
  [[nodiscard]] static ScreenSize size();

  // Returns the next key, or nothing after this time. Ctrl-C is a key, too; the end of input, SIGTERM and SIGHUP are
  // read as 'q'.
  [[nodiscard]] std::optional<char> key_within(std::chrono::milliseconds time);

 private:
  termios before_{};
  sigset_t mask_before_{};
  int signals_ = -1;  // signalfd
};

}  // namespace chorus::cli
