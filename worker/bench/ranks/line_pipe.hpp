// Lines of text between the benchmark and its rank processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace chorus::bench {

// Owns the file descriptor.
class LineReader {
 public:
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}
  ~LineReader();
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;

  // The next line without its end; empty at the end of the stream.
  [[nodiscard]] std::optional<std::string> next();

  // For waiting, when no line has been read ahead.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  std::string buffered_;
};

class LineWriter {
 public:
  explicit LineWriter(int descriptor) : descriptor_(descriptor) {}
  ~LineWriter();
  LineWriter(LineWriter&& other) noexcept;
  LineWriter& operator=(LineWriter&&) = delete;

  // False if the reading end is closed.
  bool put(std::string_view line);

 private:
  int descriptor_;
};

}  // namespace chorus::bench
