// How far long work has come: one line on standard error that is written over, for people who wait at a terminal.
#pragma once

#include <string_view>

namespace chorus::logging {

// Where standard error is no terminal it writes nothing.
class ProgressLine {
 public:
  ProgressLine();
  explicit ProgressLine(int descriptor);
  ~ProgressLine() { clear(); }
  ProgressLine(ProgressLine const&) = delete;
  ProgressLine& operator=(ProgressLine const&) = delete;

  void show(std::string_view text);
  // Before anything else is written.
  void clear();

 private:
  void write(std::string_view text) const;

  int const descriptor_;
  bool const is_terminal_;
  bool is_shown_ = false;
};

}  // namespace chorus::logging
