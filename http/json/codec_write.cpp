#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "http/json/codec.hpp"
#include "http/json/json_text.hpp"
#include "http/json/problem_text.hpp"

namespace chorus::http::codec {
namespace {

// The growing end of a string. Pieces of a few bytes are stored directly: append() would check size and capacity for
// each of them.
class Sink {
 public:
  explicit Sink(std::string& text) : text_(text), used_(text.size()) {}
  ~Sink() { text_.resize(used_); }
  Sink(Sink const&) = delete;
  Sink& operator=(Sink const&) = delete;

  void put(char c) {
    *room(1) = c;
    ++used_;
  }

  void put(std::string_view piece) {
    std::memcpy(room(piece.size()), piece.data(), piece.size());
    used_ += piece.size();
  }

  void name(std::string_view name, bool is_first) {
    constexpr std::size_t around = 4;  // ,"":
    auto* at = room(name.size() + around);
    auto const* const begin = at;
    if (!is_first) *at++ = ',';
    *at++ = '"';
    std::memcpy(at, name.data(), name.size());
    at += name.size();
    *at++ = '"';
    *at++ = ':';
    used_ += static_cast<std::size_t>(at - begin);
  }

  void quoted(std::string_view text) {
    if (is_written_as_it_is(text)) {
      auto* const at = room(text.size() + 2);
      *at = '"';
      std::memcpy(at + 1, text.data(), text.size());
      at[text.size() + 1] = '"';
      used_ += text.size() + 2;
    } else {
      std::string escaped;
      append_quoted(escaped, text);
      put(escaped);
    }
  }

  template <class Number>
  void number(Number value) {
    auto* const at = room(number_max);
    used_ += static_cast<std::size_t>(std::to_chars(at, at + number_max, value).ptr - at);
  }

 private:
  static constexpr std::size_t number_max = 32;             // for a double, or for 64 bits
  static constexpr std::size_t most_messages_bytes = 1000;  // most messages are shorter

  char* room(std::size_t bytes) {
    if (text_.size() - used_ < bytes) text_.resize(std::max(2 * text_.size(), used_ + bytes + most_messages_bytes));
    return text_.data() + used_;
  }

  std::string& text_;
  std::size_t used_;
};

void write_value(TypeCodec const& type, void const* value, Sink& out);

bool absent(TypeCodec const& type, void const* value) { return type.shape == Shape::optional && type.size(value) == 0; }

void write_list(TypeCodec const& type, void const* list, Sink& out) {
  out.put('[');
  for (std::size_t i = 0; i < type.size(list); ++i) {
    if (i > 0) out.put(',');
    write_value(*type.element, type.at(list, i), out);
  }
  out.put(']');
}

bool is_text(TypeCodec const& type, void const* object) {
  if (!type.may_be_text) return false;
  return std::all_of(type.fields + 1, type.fields + type.fields_count, [object](FieldCodec const& field) {
    return absent(*field.type, field.locate(const_cast<void*>(object)));
  });
}

void write_object(TypeCodec const& type, void const* object, Sink& out) {
  if (is_text(type, object))
    return write_value(*type.fields[0].type, type.fields[0].locate(const_cast<void*>(object)), out);
  out.put('{');
  bool is_first = true;
  for (std::size_t i = 0; i < type.fields_count; ++i) {
    auto const& field = type.fields[i];
    // locate serves the reader too and takes a mutable object; nothing is written here.
    void const* value = field.locate(const_cast<void*>(object));
    if (absent(*field.type, value)) continue;
    // Names of members contain nothing that has to be escaped.
    out.name(field.name, std::exchange(is_first, false));
    write_value(*field.type, value, out);
  }
  out.put('}');
}

void write_value(TypeCodec const& type, void const* value, Sink& out) {
  switch (type.shape) {
    case Shape::boolean:
      out.put(*static_cast<bool const*>(value) ? std::string_view("true") : std::string_view("false"));
      return;
    case Shape::integer:
      if (type.integer_min < 0)
        out.number(static_cast<std::int64_t>(type.load_integer(value)));
      else
        out.number(type.load_integer(value));
      return;
    case Shape::real:
      if (auto const real = *static_cast<double const*>(value); std::isfinite(real))
        out.number(real);
      else
        out.put("null");
      return;
    case Shape::text:
      out.quoted(*static_cast<std::string const*>(value));
      return;
    case Shape::optional:
      if (absent(type, value))
        out.put("null");
      else
        write_value(*type.element, type.at(value, 0), out);
      return;
    case Shape::list:
      write_list(type, value, out);
      return;
    case Shape::object:
      write_object(type, value, out);
      return;
    case Shape::problem: {
      auto const text = to_text(*static_cast<Problem const*>(value));
      write_value(problem_text_codec(), &text, out);
      return;
    }
  }
}

}  // namespace

void write(TypeCodec const& type, void const* message, std::string& out) {
  Sink sink(out);
  write_value(type, message, sink);
}

}  // namespace chorus::http::codec
