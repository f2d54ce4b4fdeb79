// The terminal that a live view is shown on.
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

// While it lives, keys come one by one and unseen, and the view has a screen of its own; afterwards everything is as it
// was, also when a signal asks the program to end. Standard input and output are a terminal. By the only thread.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(LiveScreen const&) = delete;
  LiveScreen& operator=(LiveScreen const&) = delete;

  [[nodiscard]] static bool is_possible();
  [[nodiscard]] static ScreenSize size();

  // The next key, or nothing when the time is over. Ctrl-C is a key, too; the end of input, SIGTERM and SIGHUP read as
  // 'q'.
  [[nodiscard]] std::optional<char> key_within(std::chrono::milliseconds time);

 private:
  termios before_{};
  sigset_t mask_before_{};
  int signals_ = -1;  // signalfd
};

}  // namespace chorus::cli
