#include "server/cli/files/npy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "server/cli/text/errc.hpp"

namespace chorus::cli {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t dimensions_max = 32;

struct Descr {
  std::string_view text;
  Dtype dtype;
};
constexpr std::array descrs{Descr{"<f8", Dtype::f64}, Descr{"<f4", Dtype::f32}, Descr{"<f2", Dtype::f16},
                            Descr{"<i8", Dtype::i64}, Descr{"<i4", Dtype::i32}, Descr{"<i2", Dtype::i16},
                            Descr{"|i1", Dtype::i8},  Descr{"<u8", Dtype::u64}, Descr{"<u4", Dtype::u32},
                            Descr{"<u2", Dtype::u16}, Descr{"|u1", Dtype::u8}};

Error bad(std::string detail) { return {CliErrc::bad_file, std::move(detail)}; }

// Reads the dictionary from left to right, and reports the first deviation.
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : rest_(text) {}

  Result<NpyHead> parse() {
    if (!take('{')) return wrong("does not begin with '{'");
    while (!take('}')) {
      auto const key = quoted();
      if (!key || !take(':')) return wrong("has no 'NAME': before each value");
      if (!parse_value(*key)) return bad(*std::move(why_));
      if (!take(',') && !begins_with('}')) return wrong("has neither ',' nor '}' behind a value");
    }
    skip_blanks();
    if (!rest_.empty()) return wrong("goes on behind its '}'");
    if (!has_dtype_ || !has_order_ || !has_shape_) return wrong("lacks one of 'descr', 'fortran_order' and 'shape'");
    return std::move(head_);
  }

 private:
  bool parse_value(std::string_view key) {
    if (key == "descr" && !std::exchange(has_dtype_, true)) return parse_descr();
    if (key == "fortran_order" && !std::exchange(has_order_, true)) return parse_order();
    if (key == "shape" && !std::exchange(has_shape_, true)) return parse_shape();
    bool const is_known = key == "descr" || key == "fortran_order" || key == "shape";
    return note(is_known ? "has '" + std::string(key) + "' once too often"
                         : "has an entry '" + shortened(key) + "', which is none of the format");
  }

  bool parse_descr() {
    auto const text = quoted();
    if (!text) return note("has a 'descr' that is no text: only arrays of plain numbers are taken");
    auto const found = std::ranges::find(descrs, *text, &Descr::text);
    if (found != descrs.end()) {
      head_.dtype = found->dtype;
      return true;
    }
    if (text->starts_with('>')) return note("says that the elements are big-endian ('" + shortened(*text) + "')");
    return note("has elements '" + shortened(*text) + "', which no dtype of tensors is");
  }

  bool parse_order() {
    if (take_word("False")) return true;
    if (take_word("True"))
      return note("says that columns come first: numpy.ascontiguousarray() turns it round before it is saved");
    return note("has a 'fortran_order' that is neither True nor False");
  }

  // Parses tuples as Python writes them: (), (3,), (3, 4) or (3, 4,).
  bool parse_shape() {
    if (!take('(')) return note("has a 'shape' that is no tuple");
    for (bool is_over = take(')'); !is_over; is_over = take(')')) {
      if (head_.shape.size() == dimensions_max)
        return note("has more than " + std::to_string(dimensions_max) + " dimensions");
      if (!parse_extent()) return false;
      auto const has_comma = take(',');
      if (!has_comma && (!begins_with(')') || head_.shape.size() == 1))
        return note("has a 'shape' that is no tuple of whole numbers");
    }
    return true;
  }

  bool parse_extent() {
    skip_blanks();
    std::uint64_t extent = 0;
    auto const [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), extent);
    auto const digits = static_cast<std::size_t>(end - rest_.data());
    if (error == std::errc::result_out_of_range) return note("has a dimension beyond 2^64");
    if (error != std::errc() || (digits > 1 && rest_.front() == '0'))
      return note("has a 'shape' that is no tuple of whole numbers");
    rest_.remove_prefix(digits);
    head_.shape.push_back(extent);
    return true;
  }

  std::optional<std::string_view> quoted() {
    skip_blanks();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    auto const end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    auto const text = rest_.substr(1, end - 1);
    if (text.find('\\') != std::string_view::npos) return std::nullopt;
    rest_.remove_prefix(end + 1);
    return text;
  }

  bool take_word(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  bool begins_with(char c) {
    skip_blanks();
    return rest_.starts_with(c);
  }
  bool take(char c) { return take_word(std::string_view(&c, 1)); }
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  static std::string shortened(std::string_view text) { return std::string(text.substr(0, 20)); }
  static Error wrong(std::string const& what) { return bad("its head " + what); }
  bool note(std::string const& what) {
    why_ = wrong(what).detail;
    return false;
  }

  std::string_view rest_;
  NpyHead head_;
  bool has_dtype_ = false, has_order_ = false, has_shape_ = false;
  std::optional<std::string> why_;
};

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

bool begins_like_npy(std::span<std::byte const> file) {
  return std::string_view(reinterpret_cast<char const*>(file.data()), file.size()).starts_with(magic);
}

Result<NpyHead> parse_npy(std::span<std::byte const> file) {
  constexpr std::size_t version_at = 6, length_at = 8;
  std::string_view const text(reinterpret_cast<char const*>(file.data()), file.size());
  if (!text.starts_with(magic)) return bad("it does not begin as .npy files do");
  if (text.size() < length_at) return bad("it ends within its head");
  auto const major = static_cast<unsigned char>(text[version_at]);
  auto const minor = static_cast<unsigned char>(text[version_at + 1]);
  if ((major != 1 && major != 2) || minor != 0)
    return bad("its version is " + std::to_string(major) + "." + std::to_string(minor) + ": 1.0 and 2.0 are taken");
  std::size_t const line_at = length_at + (major == 1 ? 2 : 4);
  if (text.size() < line_at) return bad("it ends within its head");
  auto const length = little_endian(text.substr(length_at, line_at - length_at));
  if (length > npy_head_bytes_max - line_at)
    return bad("its head has more than " + std::to_string(npy_head_bytes_max) + " bytes");
  auto const line = text.substr(line_at, length);
  if (line.size() < length) return bad("it ends within its head");
  if (!line.ends_with('\n')) return bad("its head does not end with the end of a line");
  auto head = Dictionary(line.substr(0, length - 1)).parse();
  if (head) head->bytes = line_at + length;
  return head;
}

std::optional<std::string> npy_head(Dtype dtype, std::span<std::uint64_t const> shape) {
  constexpr std::size_t alignment = 64;  // of the elements, so that the file can be mapped and used
  auto const found = std::ranges::find(descrs, dtype, &Descr::dtype);
  if (found == descrs.end()) return std::nullopt;
  std::string extents;
  for (auto const extent : shape) extents += (extents.empty() ? "" : ", ") + std::to_string(extent);
  if (shape.size() == 1) extents += ',';
  auto line = "{'descr': '" + std::string(found->text) + "', 'fortran_order': False, 'shape': (" + extents + "), }";
  constexpr std::size_t before = 10;
  line.resize((before + line.size() + 1 + alignment - 1) / alignment * alignment - before - 1, ' ');
  line += '\n';
  if (line.size() > UINT16_MAX) return std::nullopt;
  std::string head(magic);
  head += {'\x01', '\x00', static_cast<char>(line.size() & 0xFF), static_cast<char>(line.size() >> 8)};
  return head + line;
}

}  // namespace chorus::cli
