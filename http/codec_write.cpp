#include <array>
#include <charconv>
#include <utility>

#include "http/codec.hpp"
#include "http/json_text.hpp"
#include "http/problem_text.hpp"

namespace chorus::http::codec {
namespace {

bool absent(TypeCodec const& type, void const* value) { return type.shape == Shape::optional && type.size(value) == 0; }

template <class Integer>
void write_integer(Integer value, std::string& out) {
  std::array<char, 24> digits;
  out.append(digits.data(), std::to_chars(digits.begin(), digits.end(), value).ptr);
}

void write_list(TypeCodec const& type, void const* list, std::string& out) {
  out += '[';
  for (std::size_t i = 0; i < type.size(list); ++i) {
    if (i > 0) out += ',';
    write(*type.element, type.at(list, i), out);
  }
  out += ']';
}

void write_object(TypeCodec const& type, void const* object, std::string& out) {
  out += '{';
  bool first = true;
  for (std::size_t i = 0; i < type.fields_count; ++i) {
    auto const& field = type.fields[i];
    // locate serves the reader too and takes a mutable object; nothing is written here.
    void const* value = field.locate(const_cast<void*>(object));
    if (absent(*field.type, value)) continue;
    // Names of members: nothing in them needs to be escaped.
    out += std::exchange(first, false) ? "\"" : ",\"";
    out += field.name;
    out += "\":";
    write(*field.type, value, out);
  }
  out += '}';
}

}  // namespace

void write(TypeCodec const& type, void const* message, std::string& out) {
  switch (type.shape) {
    case Shape::boolean:
      out += *static_cast<bool const*>(message) ? "true" : "false";
      return;
    case Shape::integer:
      if (type.integer_min < 0)
        write_integer(static_cast<std::int64_t>(type.load_integer(message)), out);
      else
        write_integer(type.load_integer(message), out);
      return;
    case Shape::real:
      append_number(out, *static_cast<double const*>(message));
      return;
    case Shape::text:
      append_quoted(out, *static_cast<std::string const*>(message));
      return;
    case Shape::optional:
      if (absent(type, message))
        out += "null";
      else
        write(*type.element, type.at(message, 0), out);
      return;
    case Shape::list:
      write_list(type, message, out);
      return;
    case Shape::object:
      write_object(type, message, out);
      return;
    case Shape::problem: {
      auto const text = to_text(*static_cast<Problem const*>(message));
      write(problem_text_codec(), &text, out);
      return;
    }
  }
}

}  // namespace chorus::http::codec
