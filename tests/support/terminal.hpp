// A program on a separate terminal, as for a user: screen contents, size, keys.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace chorus::testing {

// The screen that a terminal makes of bytes: a grid of one-byte characters. Understands what Chorus programs write:
// text, CR, LF, cursor home, clearing everything or the rest of a line, the alternate screen, a hidden cursor. Any
// other escape sequence throws.
class Screen {
 public:
  Screen(std::size_t columns, std::size_t rows);
  void write(std::string const& bytes);
  void resize(std::size_t columns, std::size_t rows);  // clears; the program draws again
  // Lines from top to bottom, without trailing blanks.
  [[nodiscard]] std::vector<std::string> const& lines() const { return lines_; }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_second() const { return is_second_; }
  [[nodiscard]] bool hides_cursor() const { return hides_cursor_; }

 private:
  void clear();
  void put(char c);
  void feed_line();
  bool obey_escape();  // handles escape_; false: it is not complete

  std::size_t columns_, rows_;
  std::vector<std::string> lines_;
  std::size_t row_ = 0, column_ = 0;
  std::string escape_;  // an incomplete escape sequence
  bool is_second_ = false, hides_cursor_ = false;
};

class Terminal {
 public:
  Terminal(std::vector<std::string> arguments, std::size_t columns, std::size_t rows);
  ~Terminal();  // kills and reaps
  Terminal(Terminal const&) = delete;
  Terminal& operator=(Terminal const&) = delete;

  // Waits for the text; false if the screen does not show it in time.
  [[nodiscard]] bool shows(std::string const& text);
  [[nodiscard]] Screen const& screen();
  void press(std::string const& keys) const;
  void resize(std::size_t columns, std::size_t rows);
  [[nodiscard]] bool is_raw() const;  // keys arrive one by one and without echo
  void signal(int number) const;
  int wait();  // exit status; 128 + signal if it was killed

 private:
  void read();

  int ours_ = -1, theirs_ = -1;
  int child_ = -1;
  Screen screen_;
};

}  // namespace chorus::testing
