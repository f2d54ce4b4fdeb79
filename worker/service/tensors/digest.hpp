// Digests of tensors: RFC 9530 fields for verified transfers, xxh3-64 for comparing results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/json/problem.hpp"

namespace chorus::service {

enum class DigestAlgorithm : std::uint8_t { sha_256, sha_512 };
[[nodiscard]] std::string_view name(DigestAlgorithm algorithm);  // "sha-256"

struct Digest {
  DigestAlgorithm algorithm = DigestAlgorithm::sha_256;
  std::string base64;
  friend bool operator==(Digest const&, Digest const&) = default;
};

// Slow (about 1 GB/s): call on a helper thread.
[[nodiscard]] Digest digest(DigestAlgorithm algorithm, std::span<std::byte const> bytes);

// Digest of bytes that are added piece by piece.
class Digester {
 public:
  explicit Digester(DigestAlgorithm algorithm);
  ~Digester();
  Digester(Digester const&) = delete;
  Digester& operator=(Digester const&) = delete;
  void add(std::span<std::byte const> bytes);
  [[nodiscard]] Digest finish();  // once, at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// "sha-256=:BASE64:", as in the fields Content-Digest and Repr-Digest.
[[nodiscard]] std::string to_field(Digest const& digest);

// The strongest digest in a Content-Digest field that can be computed here; empty if there is none. Problem bad_request
// for a malformed field.
[[nodiscard]] http::Checked<std::optional<Digest>> parse_digest_field(std::string_view field);

// The most wanted known algorithm in a Want-Repr-Digest field ("sha-256=1, sha-512=0"); empty if there is none, or if
// the field is malformed: a wish is never refused.
[[nodiscard]] std::optional<DigestAlgorithm> parse_wanted_digest(std::string_view field);

// xxh3-64 as 16 hexadecimal digits.
[[nodiscard]] std::string fast_digest(std::span<std::byte const> bytes);

// fast_digest() of bytes that are added piece by piece.
class FastDigester {
 public:
  FastDigester();
  ~FastDigester();
  FastDigester(FastDigester const&) = delete;
  FastDigester& operator=(FastDigester const&) = delete;
  void add(std::span<std::byte const> bytes);
  [[nodiscard]] std::string finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace chorus::service
