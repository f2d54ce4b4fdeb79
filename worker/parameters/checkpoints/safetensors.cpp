#include "worker/parameters/checkpoints/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "http/json/json_text.hpp"
#include "worker/parameters/checkpoints/errc.hpp"

namespace chorus::checkpoints {
namespace {

constexpr std::size_t data_alignment = 64;

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string upper(std::string_view lower) {
  std::string text(lower);
  for (auto& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

void append_numbers(std::string& out, std::span<std::uint64_t const> numbers) {
  out += '[';
  for (std::size_t i = 0; i < numbers.size(); ++i) out += (i == 0 ? "" : ",") + std::to_string(numbers[i]);
  out += ']';
}

// Sets begin and end of a tensor.
Status place(TensorEntry& tensor, std::uint64_t begin) {
  auto const bytes = data_bytes(tensor);
  tensor.begin = begin;
  if (!bytes || __builtin_add_overflow(begin, *bytes, &tensor.end))
    return Error(SafetensorsErrc::size_overflow, tensor.name + " does not fit into a file");
  return ok();
}

}  // namespace

std::optional<std::uint64_t> data_bytes(TensorEntry const& tensor) {
  std::uint64_t bytes = element_bytes(tensor.dtype);
  bool empty = false;
  for (auto const dimension : tensor.shape) {
    empty |= dimension == 0;
    if (dimension != 0 && __builtin_mul_overflow(bytes, dimension, &bytes)) return std::nullopt;
  }
  return empty ? 0 : bytes;
}

TensorEntry const* SafetensorsHeader::find(std::string_view name) const {
  auto const found =
      std::find_if(tensors.begin(), tensors.end(), [&](auto const& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Result<std::string> make_safetensors_header(std::vector<TensorEntry>& tensors,
                                            std::vector<std::pair<std::string, std::string>> const& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    std::unordered_set<std::string_view> keys;
    for (auto const& [key, value] : metadata) {
      if (!is_printable(key) || !is_printable(value))
        return Error(SafetensorsErrc::bad_name, "metadata is not printable ASCII");
      if (!keys.insert(key).second) return Error(SafetensorsErrc::duplicate_name, "metadata has " + key + " twice");
      if (keys.size() > 1) text += ',';
      http::append_quoted(text, key);
      text += ':';
      http::append_quoted(text, value);
    }
    text += '}';
  }
  std::unordered_set<std::string_view> names;
  std::uint64_t end = 0;
  for (auto& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__" || !is_printable(tensor.name))
      return Error(SafetensorsErrc::bad_name, "a tensor cannot be called that");
    if (!names.insert(tensor.name).second)
      return Error(SafetensorsErrc::duplicate_name, "there are two tensors " + tensor.name);
    if (auto const placed = place(tensor, end); placed.has_error()) return placed.error();
    end = tensor.end;
    if (text.size() > 1) text += ',';
    http::append_quoted(text, tensor.name);
    text += ":{\"dtype\":\"" + upper(name(tensor.dtype)) + "\",\"shape\":";
    append_numbers(text, tensor.shape);
    text += ",\"data_offsets\":";
    append_numbers(text, std::array{tensor.begin, tensor.end});
    text += '}';
  }
  text += '}';
  auto const misfit = (safetensors_prefix + text.size()) % data_alignment;
  text.append(misfit == 0 ? 0 : data_alignment - misfit, ' ');
  if (text.size() > safetensors_header_max)
    return Error(SafetensorsErrc::header_too_large, "a header of " + std::to_string(text.size()) + " bytes");
  std::uint64_t const length = text.size();
  std::string prefix(sizeof length, '\0');
  std::memcpy(prefix.data(), &length, sizeof length);
  return prefix + text;
}

}  // namespace chorus::checkpoints
