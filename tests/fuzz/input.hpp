// What a fuzz target is given, taken apart from the front. Whatever is missing at the end is zero or empty.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "collectives/core/assert.hpp"

// What every target defines: libFuzzer calls it, or replay.cpp. A property that does not hold ends the process.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace chorus::fuzz {

class Input {
 public:
  Input(std::uint8_t const* data, std::size_t size) : rest_(reinterpret_cast<char const*>(data), size) {}

  template <class Number>
  Number number() {
    Number value{};
    auto const bytes = std::min(sizeof value, rest_.size());
    std::memcpy(&value, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
    return value;
  }
  std::uint8_t byte() { return number<std::uint8_t>(); }

  std::string_view line() {  // without its '\n'
    auto const text = rest_.substr(0, rest_.find('\n'));
    rest_.remove_prefix(std::min(rest_.size(), text.size() + 1));
    return text;
  }

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  [[nodiscard]] std::string_view text() const { return rest_; }  // all that is left
  [[nodiscard]] std::span<std::byte const> bytes() const { return std::as_bytes(std::span(rest_)); }

 private:
  std::string_view rest_;
};

}  // namespace chorus::fuzz
