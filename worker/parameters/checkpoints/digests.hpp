// The two digests of a file, computed as its bytes come. XXH3 finds what hardware and crashes do, at the speed of
// memory; SHA-256 is what other tools know and nobody can forge.
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
  // In hexadecimal digits: 128 bits, 256 bits. Each once, after the last byte.
  [[nodiscard]] std::string xxh3() const;
  [[nodiscard]] std::string sha256();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string sha256_of(std::string_view text);

}  // namespace chorus::checkpoints
