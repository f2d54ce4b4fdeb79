#include "worker/parameters/log/format.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>

namespace chorus::parameters::log_format {
namespace {

constexpr std::string_view base_prefix = "base-", log_prefix = "log-", epoch_prefix = "epoch-";

template <class Number>
std::optional<Number> number_of(std::string_view digits) {
  Number number = 0;
  auto const [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

std::uint64_t digest_of(std::span<std::byte const> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Digest::Digest() : state_(XXH3_createState()) { XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_)); }
Digest::~Digest() { XXH3_freeState(static_cast<XXH3_state_t*>(state_)); }
void Digest::add(std::span<std::byte const> bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_), bytes.data(), bytes.size());
}
std::uint64_t Digest::value() const { return XXH3_64bits_digest(static_cast<XXH3_state_t*>(state_)); }

std::optional<FileName> parse_file_name(std::string_view name) {
  FileName parsed;
  parsed.is_base = name.starts_with(base_prefix);
  if (!parsed.is_base && !name.starts_with(log_prefix)) return std::nullopt;
  auto const digits = name.substr(parsed.is_base ? base_prefix.size() : log_prefix.size());
  auto const generation = number_of<std::uint64_t>(digits);
  if (!generation) return std::nullopt;
  parsed.generation = *generation;
  return parsed;
}

std::optional<std::uint32_t> parse_epoch_name(std::string_view name) {
  if (!name.starts_with(epoch_prefix)) return std::nullopt;
  return number_of<std::uint32_t>(name.substr(epoch_prefix.size()));
}

std::string epoch_name(std::uint32_t epoch) { return std::string(epoch_prefix) + std::to_string(epoch); }

std::string file_name(bool is_base, std::uint64_t generation) {
  return std::string(is_base ? base_prefix : log_prefix) + std::to_string(generation);
}

}  // namespace chorus::parameters::log_format
