#include "worker/parameters/checkpoints/digests.hpp"

#include <openssl/evp.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>

#include "collectives/core/assert.hpp"

namespace chorus::checkpoints {
namespace {

std::string to_hex(std::span<unsigned char const> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (auto const byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace

struct Digests::State {
  XXH3_state_t xxh3;
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> sha256{nullptr, &EVP_MD_CTX_free};
};

Digests::Digests(bool with_sha256) : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh3);
  if (!with_sha256) return;
  state_->sha256.reset(EVP_MD_CTX_new());
  CHORUS_ASSERT(state_->sha256 && EVP_DigestInit_ex(state_->sha256.get(), EVP_sha256(), nullptr) == 1,
                "OpenSSL has SHA-2");
}

Digests::~Digests() = default;

void Digests::add(std::span<std::byte const> bytes) {
  XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
  if (state_->sha256)
    CHORUS_ASSERT(EVP_DigestUpdate(state_->sha256.get(), bytes.data(), bytes.size()) == 1, "OpenSSL takes bytes");
}

std::string Digests::xxh3() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh3));
  return to_hex(canonical.digest);
}

std::string Digests::sha256() {
  std::array<unsigned char, 32> hash{};
  CHORUS_ASSERT(state_->sha256 && EVP_DigestFinal_ex(state_->sha256.get(), hash.data(), nullptr) == 1,
                "SHA-256 was asked for");
  return to_hex(hash);
}

std::string sha256_of(std::string_view text) {
  Digests digests(true);
  digests.add(std::as_bytes(std::span(text)));
  return digests.sha256();
}

}  // namespace chorus::checkpoints
