#include "worker/parameters/checkpoints/safetensors_parse.hpp"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <cstring>
#include <tuple>
#include <unordered_set>

#include "http/json/json_text.hpp"
#include "worker/parameters/checkpoints/errc.hpp"

namespace chorus::checkpoints {
namespace {

namespace json = boost::json;
using json::error_code;
using json::string_view;

constexpr std::size_t quoted_bytes = 80;
constexpr std::string_view metadata_name = "__metadata__";

std::string quoted(std::string_view text) {
  std::string out;
  http::append_quoted(out, text.substr(0, quoted_bytes));
  return out;
}

// Parses the format's names, such as "F32".
std::optional<Dtype> parse_upper_dtype(std::string_view text) {
  std::string lower;
  for (auto const c : text) {
    if (c >= 'a' && c <= 'z') return std::nullopt;
    lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return parse_dtype(lower);
}

// Receives the parser's events on three levels of nesting. An unexpected event ends the parse.
class Reader {
 public:
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  [[nodiscard]] std::optional<Error> const& error() const { return error_; }
  [[nodiscard]] SafetensorsHeader take() { return std::move(header_); }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) {
    if (place_ == Place::outside) return enter(Place::root);
    if (place_ != Place::root) return unexpected("an object");
    if (key_ == metadata_name) return enter(Place::metadata);
    header_.tensors.emplace_back().name = key_;
    fields_ = 0;
    return enter(Place::tensor);
  }
  bool on_object_end(std::size_t, error_code&) {
    if (place_ == Place::root) return enter(Place::outside);
    if (place_ == Place::tensor && fields_ != (has_dtype | has_shape | has_offsets))
      return fail(SafetensorsErrc::bad_header,
                  "the tensor " + quoted(header_.tensors.back().name) + " lacks dtype, shape or data_offsets");
    return enter(Place::root);
  }
  bool on_array_begin(error_code&) {
    if (place_ == Place::tensor && key_ == "shape") return add_field(has_shape) && enter(Place::shape);
    if (place_ == Place::tensor && key_ == "data_offsets") return add_field(has_offsets) && enter(Place::offsets);
    return unexpected("an array");
  }
  bool on_array_end(std::size_t size, error_code&) {
    if (place_ == Place::offsets && size != 2)
      return fail(SafetensorsErrc::bad_header, "data_offsets has " + std::to_string(size) + " numbers, not 2");
    return enter(Place::tensor);
  }
  bool on_key_part(string_view part, std::size_t, error_code&) { return collect(part); }
  bool on_key(string_view part, std::size_t, error_code&) {
    collect(part);
    key_ = std::exchange(text_, {});
    if (place_ == Place::root) {
      if (key_.empty()) return fail(SafetensorsErrc::bad_name, "a tensor has no name");
      return names_.insert(key_).second || duplicate();
    }
    if (place_ == Place::metadata) return metadata_names_.insert(key_).second || duplicate();
    return true;
  }
  bool on_string_part(string_view part, std::size_t, error_code&) { return collect(part); }
  bool on_string(string_view part, std::size_t, error_code&) {
    collect(part);
    auto text = std::exchange(text_, {});
    if (place_ == Place::metadata) return header_.metadata.emplace_back(key_, std::move(text)), true;
    if (place_ != Place::tensor || key_ != "dtype") return unexpected("a string");
    auto const dtype = parse_upper_dtype(text);
    if (!dtype)
      return fail(SafetensorsErrc::bad_dtype, "the dtype " + quoted(text) + " is not one of those stored here");
    header_.tensors.back().dtype = *dtype;
    return add_field(has_dtype);
  }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t value, string_view, error_code&) {
    return value >= 0 ? number(static_cast<std::uint64_t>(value)) : unexpected("a negative number");
  }
  bool on_uint64(std::uint64_t value, string_view, error_code&) { return number(value); }
  bool on_double(double, string_view, error_code&) { return unexpected("a number that is not whole or too large"); }
  bool on_bool(bool, error_code&) { return unexpected("true or false"); }
  bool on_null(error_code&) { return unexpected("null"); }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  enum class Place : std::uint8_t { outside, root, metadata, tensor, shape, offsets };
  static constexpr unsigned has_dtype = 1, has_shape = 2, has_offsets = 4;

  bool collect(string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  bool enter(Place place) {
    place_ = place;
    offsets_ = 0;
    return true;
  }
  bool number(std::uint64_t value) {
    if (place_ == Place::shape) return header_.tensors.back().shape.push_back(value), true;
    if (place_ != Place::offsets) return unexpected("a number");
    auto& tensor = header_.tensors.back();
    if (offsets_ == 0) tensor.begin = value;
    if (offsets_ == 1) tensor.end = value;
    ++offsets_;
    return true;
  }
  bool add_field(unsigned field) {
    if ((fields_ & field) != 0) return duplicate();
    fields_ |= field;
    return true;
  }
  bool duplicate() { return fail(SafetensorsErrc::duplicate_name, "the name " + quoted(key_) + " occurs twice"); }
  bool unexpected(std::string_view what) {
    return fail(SafetensorsErrc::bad_header,
                std::string(what) + " does not belong " +
                    (place_ == Place::outside ? "where the header is" : "where " + quoted(key_) + " is"));
  }
  bool fail(SafetensorsErrc code, std::string detail) {
    error_ = Error(code, std::move(detail));
    return false;
  }

  SafetensorsHeader header_;
  Place place_ = Place::outside;
  std::string key_, text_;
  unsigned fields_ = 0;      // of the current tensor
  std::size_t offsets_ = 0;  // number of data_offsets read
  std::unordered_set<std::string> names_, metadata_names_;
  std::optional<Error> error_;
};

// Checks that every tensor has the bytes of its shape, and that every byte belongs to exactly one tensor.
Status check_bytes(SafetensorsHeader const& header, std::uint64_t file_bytes) {
  std::uint64_t covered = 0;
  auto const room = file_bytes - header.data_begin;
  for (auto const& tensor : header.tensors) {
    auto const name = "the tensor " + quoted(tensor.name);
    if (tensor.end < tensor.begin)
      return Error(SafetensorsErrc::bad_offsets,
                   name + " ends at " + std::to_string(tensor.end) + ", before it begins");
    auto const bytes = data_bytes(tensor);
    if (!bytes) return Error(SafetensorsErrc::size_overflow, name + " has a shape beyond 64 bits");
    if (*bytes != tensor.end - tensor.begin)
      return Error(SafetensorsErrc::size_mismatch, name + " has " + std::to_string(tensor.end - tensor.begin) +
                                                       " bytes, its shape asks for " + std::to_string(*bytes));
    if (tensor.begin < covered)
      return Error(SafetensorsErrc::overlap, name + " begins within another, at " + std::to_string(tensor.begin));
    if (tensor.begin > covered)
      return Error(SafetensorsErrc::hole, "bytes from " + std::to_string(covered) + " to " +
                                              std::to_string(tensor.begin) + " belong to no tensor");
    covered = tensor.end;
  }
  if (covered > room)
    return Error(SafetensorsErrc::truncated, "the tensors have " + std::to_string(covered) +
                                                 " bytes, the file has room for " + std::to_string(room));
  if (covered < room)
    return Error(SafetensorsErrc::hole, std::to_string(room - covered) + " bytes after the last tensor");
  return ok();
}

}  // namespace

Result<std::uint64_t> safetensors_header_bytes(std::span<std::byte const> prefix, std::uint64_t file_bytes) {
  if (prefix.size() < safetensors_prefix || file_bytes < safetensors_prefix)
    return Error(SafetensorsErrc::truncated, "the file has " + std::to_string(file_bytes) + " bytes");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, prefix.data(), sizeof header_bytes);
  if (header_bytes > safetensors_header_max)
    return Error(SafetensorsErrc::header_too_large, "a header of " + std::to_string(header_bytes) + " bytes");
  if (header_bytes > file_bytes - safetensors_prefix)
    return Error(SafetensorsErrc::truncated,
                 "a header of " + std::to_string(header_bytes) + " bytes in a file of " + std::to_string(file_bytes));
  return header_bytes;
}

Result<SafetensorsHeader> parse_safetensors(std::string_view text, std::uint64_t file_bytes) {
  if (text.size() > safetensors_header_max)
    return Error(SafetensorsErrc::header_too_large, "a header of " + std::to_string(text.size()) + " bytes");
  if (file_bytes < safetensors_prefix || text.size() > file_bytes - safetensors_prefix)
    return Error(SafetensorsErrc::truncated, "the file has " + std::to_string(file_bytes) + " bytes");
  if (!text.starts_with('{')) return Error(SafetensorsErrc::bad_start, "the header does not begin with {");
  json::parse_options options;
  options.max_depth = 4;
  json::basic_parser<Reader> parser(options);
  error_code ec;
  auto const consumed = parser.write_some(false, text.data(), text.size(), ec);
  if (auto const& error = parser.handler().error()) return *error;
  if (ec || consumed != text.size())
    return Error(SafetensorsErrc::bad_header, "not JSON at byte " + std::to_string(consumed) + " of the header");
  auto header = parser.handler().take();
  header.data_begin = safetensors_prefix + text.size();
  std::sort(header.tensors.begin(), header.tensors.end(), [](TensorEntry const& a, TensorEntry const& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  if (auto const checked = check_bytes(header, file_bytes); checked.has_error()) return checked.error();
  return header;
}

}  // namespace chorus::checkpoints
