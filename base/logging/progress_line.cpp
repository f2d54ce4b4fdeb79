#include "base/logging/progress_line.hpp"

#include <unistd.h>

#include <string>

namespace chorus::logging {
namespace {

constexpr std::string_view clear_line = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine() : ProgressLine(STDERR_FILENO) {}

ProgressLine::ProgressLine(int descriptor) : descriptor_(descriptor), is_terminal_(isatty(descriptor) != 0) {}

void ProgressLine::show(std::string_view text) {
  if (!is_terminal_) return;
  write(std::string(clear_line).append(text));
  is_shown_ = true;
}

void ProgressLine::clear() {
  if (is_shown_) write(clear_line);
  is_shown_ = false;
}

// A failed write is ignored: there is no remedy for a terminal that accepts no output.
void ProgressLine::write(std::string_view text) const {
  [[maybe_unused]] auto const written = ::write(descriptor_, text.data(), text.size());
}

}  // namespace chorus::logging
