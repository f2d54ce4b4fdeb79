// Digests of tensors: RFC 9530 fields for people who want to be sure of a transfer, xxh3-64 to compare results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "http/problem.hpp"

namespace chorus::service {

enum class DigestAlgorithm : std::uint8_t { sha_256, sha_512 };
[[nodiscard]] std::string_view name(DigestAlgorithm algorithm);  // "sha-256"

struct Digest {
  DigestAlgorithm algorithm = DigestAlgorithm::sha_256;
  std::string base64;
  friend bool operator==(Digest const&, Digest const&) = default;
};

// Slow (about 1 GB/s): belongs on the helper thread.
[[nodiscard]] Digest digest(DigestAlgorithm algorithm, std::span<std::byte const> bytes);

// Of bytes that come one behind the other.
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

// The strongest digest of a Content-Digest field that we can compute; nothing if it names only others. Problem
// bad_request for what is no such field.
[[nodiscard]] http::Checked<std::optional<Digest>> parse_digest_field(std::string_view field);

// The algorithm of a Want-Repr-Digest field ("sha-256=1, sha-512=0") that is wanted most; nothing for none that we
// know, and for what is no such field: a wish is never refused.
[[nodiscard]] std::optional<DigestAlgorithm> parse_wanted_digest(std::string_view field);

// xxh3-64 as 16 hexadecimal digits.
[[nodiscard]] std::string fast_digest(std::span<std::byte const> bytes);

// The same of bytes that come one behind the other.
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
