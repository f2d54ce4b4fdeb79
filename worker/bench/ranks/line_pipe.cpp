#include "worker/bench/ranks/line_pipe.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace chorus::bench {

LineReader::~LineReader() {
  if (descriptor_ >= 0) close(descriptor_);
}

LineReader::LineReader(LineReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), buffered_(std::move(other.buffered_)) {}

std::optional<std::string> LineReader::next() {
  while (true) {
    if (auto const end = buffered_.find('\n'); end != std::string::npos) {
      auto line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return line;
    }
    std::array<char, 65536> chunk;
    auto const bytes = read(descriptor_, chunk.data(), chunk.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return std::nullopt;
    buffered_.append(chunk.data(), static_cast<std::size_t>(bytes));
  }
}

LineWriter::~LineWriter() {
  if (descriptor_ >= 0) close(descriptor_);
}

LineWriter::LineWriter(LineWriter&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

bool LineWriter::put(std::string_view line) {
  std::string text(line);
  text += '\n';
  std::string_view left = text;
  while (!left.empty()) {
    auto const bytes = write(descriptor_, left.data(), left.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return false;
    left.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return true;
}

}  // namespace chorus::bench
