// The two digests of a file, computed incrementally. XXH3 detects damage by hardware and crashes at the speed of
// memory. SHA-256 cannot be forged, and other tools know it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace chorus::checkpoints {

class Digests {
 public:
  explicit Digests(bool with_sha256);
  ~Digests();
  Digests(Digests const&) = delete;
  Digests& operator=(Digests const&) = delete;

  void add(std::span<std::byte const> bytes);
  // Return hexadecimal digits of 128 bits and of 256 bits. Call each once, after the last byte.
  [[nodiscard]] std::string xxh3() const;
  [[nodiscard]] std::string sha256();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string sha256_of(std::string_view text);

}  // namespace chorus::checkpoints
