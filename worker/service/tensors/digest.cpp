#include "worker/service/tensors/digest.hpp"

#include <openssl/evp.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "collectives/core/assert.hpp"
#include "http/api/cluster/membership.hpp"

namespace chorus::service {
namespace {

constexpr std::array algorithms{DigestAlgorithm::sha_512, DigestAlgorithm::sha_256};  // strongest first

struct Member {
  std::string_view key;
  std::string_view value;
};

std::string_view trim(std::string_view text) {
  auto const begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// A dictionary of structured fields (RFC 8941), without parameters; an element without "=" has no value.
std::vector<Member> split_dictionary(std::string_view field) {
  std::vector<Member> members;
  for (bool more = true; more;) {
    auto const comma = field.find(',');
    more = comma != std::string_view::npos;
    auto const element = trim(field.substr(0, comma));
    if (more) field.remove_prefix(comma + 1);
    auto const equals = std::min(element.find('='), element.size());
    members.push_back({element.substr(0, equals), equals < element.size() ? element.substr(equals + 1) : ""});
  }
  return members;
}

std::optional<DigestAlgorithm> parse_algorithm(std::string_view text) {
  for (auto const algorithm : algorithms)
    if (name(algorithm) == text) return algorithm;
  return std::nullopt;
}

std::size_t digest_bytes(DigestAlgorithm algorithm) { return algorithm == DigestAlgorithm::sha_512 ? 64 : 32; }

bool is_byte_sequence(std::string_view value) {
  auto const base64 = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '/' ||
           c == '=';
  };
  return value.size() >= 2 && value.front() == ':' && value.back() == ':' &&
         std::all_of(value.begin() + 1, value.end() - 1, base64);
}

}  // namespace

std::string_view name(DigestAlgorithm algorithm) {
  return algorithm == DigestAlgorithm::sha_512 ? "sha-512" : "sha-256";
}

struct Digester::State {
  explicit State(DigestAlgorithm a) : algorithm(a) {
    auto const* const kind = a == DigestAlgorithm::sha_512 ? EVP_sha512() : EVP_sha256();
    CHORUS_ASSERT(EVP_DigestInit_ex(context.get(), kind, nullptr) == 1, "OpenSSL has SHA-2");
  }
  DigestAlgorithm const algorithm;
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> const context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Digester::Digester(DigestAlgorithm algorithm) : state_(std::make_unique<State>(algorithm)) {}
Digester::~Digester() = default;

void Digester::add(std::span<std::byte const> bytes) {
  CHORUS_ASSERT(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1, "OpenSSL has SHA-2");
}

Digest Digester::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  CHORUS_ASSERT(EVP_DigestFinal_ex(state_->context.get(), hash.data(), &size) == 1, "a digest is finished once");
  std::array<unsigned char, EVP_MAX_MD_SIZE / 3 * 4 + 5> text{};
  auto const length = EVP_EncodeBlock(text.data(), hash.data(), static_cast<int>(size));
  return {state_->algorithm, std::string(text.begin(), text.begin() + length)};
}

Digest digest(DigestAlgorithm algorithm, std::span<std::byte const> bytes) {
  Digester digester(algorithm);
  digester.add(bytes);
  return digester.finish();
}

std::string to_field(Digest const& digest) { return std::string(name(digest.algorithm)) + "=:" + digest.base64 + ":"; }

http::Checked<std::optional<Digest>> parse_digest_field(std::string_view field) {
  std::optional<Digest> best;
  for (auto const& member : split_dictionary(field)) {
    if (member.key.empty() || !is_byte_sequence(member.value))
      return http::Problem(http::ProblemCode::bad_request, "Content-Digest is not of the form sha-256=:BASE64:");
    auto const algorithm = parse_algorithm(member.key);
    if (!algorithm || (best && best->algorithm == DigestAlgorithm::sha_512)) continue;
    auto const base64 = member.value.substr(1, member.value.size() - 2);
    if (base64.size() != (digest_bytes(*algorithm) + 2) / 3 * 4)
      return http::Problem(http::ProblemCode::bad_request,
                           "Content-Digest: " + std::string(member.key) + " has the wrong length");
    best = Digest{*algorithm, std::string(base64)};
  }
  return best;
}

std::optional<DigestAlgorithm> parse_wanted_digest(std::string_view field) {
  std::optional<DigestAlgorithm> wanted;
  unsigned most = 0;
  for (auto const& member : split_dictionary(field)) {
    auto const algorithm = parse_algorithm(member.key);
    unsigned weight = 0;
    auto const* const end = member.value.data() + member.value.size();
    auto const [stop, failure] = std::from_chars(member.value.data(), end, weight);
    if (!algorithm || failure != std::errc() || stop != end || weight <= most) continue;
    wanted = algorithm;
    most = weight;
  }
  return wanted;
}

struct FastDigester::State {
  XXH3_state_t xxh3;
};

FastDigester::FastDigester() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh3); }
FastDigester::~FastDigester() = default;

void FastDigester::add(std::span<std::byte const> bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

std::string FastDigester::finish() const { return api::to_hex(XXH3_64bits_digest(&state_->xxh3)); }

std::string fast_digest(std::span<std::byte const> bytes) {
  return api::to_hex(XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace chorus::service
