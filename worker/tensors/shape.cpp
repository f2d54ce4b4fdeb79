// Parsing and checking of shapes and names, which are text from outside.
#include <algorithm>
#include <charconv>

#include "worker/tensors/errc.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::tensors {
namespace {

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 63;

// Shortens text from outside for an error message.
std::string quoted(std::string_view text) {
  constexpr std::size_t limit = 80;
  return '"' + std::string(text.substr(0, limit)) + (text.size() > limit ? "...\"" : "\"");
}

Error bad_shape(std::string_view text, std::string_view why) {
  return {TensorErrc::bad_shape, "shape " + quoted(text) + " " + std::string(why)};
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '~' || c == '-';
}

}  // namespace

Result<std::uint64_t> element_count(Shape const& shape, Dtype dtype) {
  if (shape.size() > max_dimensions)
    return Error(TensorErrc::bad_shape, std::to_string(shape.size()) + " dimensions, at most " +
                                            std::to_string(max_dimensions) + " are possible");
  std::uint64_t const limit = max_bytes / element_bytes(dtype);
  // A zero makes the tensor empty, but the product of the other dimensions is checked as well.
  std::uint64_t product = 1;
  for (auto const dimension : shape) {
    if (dimension == 0) continue;
    if (dimension > limit / product) return bad_shape(to_string(shape), "overflows 2^63 bytes");
    product *= dimension;
  }
  return std::find(shape.begin(), shape.end(), 0U) == shape.end() ? product : 0;
}

Result<Shape> parse_shape(std::string_view text) {
  Shape shape;
  if (text.empty()) return shape;
  for (auto rest = text;;) {
    auto const part = rest.substr(0, rest.find(','));
    std::uint64_t dimension = 0;
    auto const [end, failure] = std::from_chars(part.data(), part.data() + part.size(), dimension);
    if (failure == std::errc::result_out_of_range) return bad_shape(text, "has a dimension beyond 2^64");
    if (failure != std::errc() || end != part.data() + part.size())
      return bad_shape(text, "is not a list of numbers like 4096,1024");
    if (shape.size() == max_dimensions)
      return bad_shape(text, "has more than " + std::to_string(max_dimensions) + " dimensions");
    shape.push_back(dimension);
    if (part.size() == rest.size()) return shape;
    rest.remove_prefix(part.size() + 1);
  }
}

std::string to_string(Shape const& shape) {
  std::string text;
  for (auto const dimension : shape) {
    if (!text.empty()) text += ',';
    text += std::to_string(dimension);
  }
  return text;
}

bool is_valid_name(std::string_view name) {
  if (name.empty() || name.size() > 255) return false;
  for (auto rest = name;;) {
    auto const part = rest.substr(0, rest.find('/'));
    if (part.empty() || part == "." || part == "..") return false;
    if (!std::all_of(part.begin(), part.end(), is_name_character)) return false;
    if (part.size() == rest.size()) return true;
    rest.remove_prefix(part.size() + 1);
  }
}

}  // namespace chorus::tensors
