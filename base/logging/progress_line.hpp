// Progress of long work: one line on standard error that is overwritten, for people who wait at a terminal.
#pragma once

#include <string_view>

namespace chorus::logging {

// Writes nothing if the descriptor is not a terminal.
class ProgressLine {
 public:
  ProgressLine();
  explicit ProgressLine(int descriptor);
  ~ProgressLine() { clear(); }
  ProgressLine(ProgressLine const&) = delete;
  ProgressLine& operator=(ProgressLine const&) = delete;

  void show(std::string_view text);
  // Removes the line. To be called before other output.
  void clear();

 private:
  void write(std::string_view text) const;

  int const descriptor_;
  bool const is_terminal_;
  bool is_shown_ = false;
};

}  // namespace chorus::logging
