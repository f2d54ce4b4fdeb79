// The terminal that a live view is shown on.
#pragma once

#include <termios.h>

#include <chrono>
#include <cstddef>
#include <optional>

namespace chorus::cli {

struct ScreenSize {
  std::size_t columns = 80;
  std::size_t rows = 24;
};

// While it lives, keys come one by one and unseen, and the view has a screen of its own; afterwards everything is as it
// was. Standard input and output are a terminal.
class LiveScreen {
 public:
  LiveScreen();
  ~LiveScreen();
  LiveScreen(LiveScreen const&) = delete;
  LiveScreen& operator=(LiveScreen const&) = delete;

  [[nodiscard]] static bool is_possible();
  [[nodiscard]] static ScreenSize size();

  // The next key, or nothing when the time is over. Ctrl-C is a key, too; the end of input reads as 'q'.
  [[nodiscard]] std::optional<char> key_within(std::chrono::milliseconds time);

 private:
  termios before_{};
};

}  // namespace chorus::cli
