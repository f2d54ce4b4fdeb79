#include "http/openapi/json_layout.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace chorus::http::openapi {
namespace {

namespace json = boost::json;

constexpr std::size_t line_max = 100;

void lay_out(json::value const& value, std::size_t indent, std::string& out) {
  auto text = json::serialize(value);
  bool const is_container = value.is_object() || value.is_array();
  if (!is_container || text.size() + indent <= line_max) {
    out += text;
    return;
  }
  bool first = true;
  auto const begin_line = [&] {
    out += first ? "\n" : ",\n";
    first = false;
    out.append(indent + 2, ' ');
  };
  out += value.is_object() ? '{' : '[';
  if (auto const* object = value.if_object()) {
    for (auto const& member : *object) {
      begin_line();
      out += json::serialize(member.key()) + ": ";
      lay_out(member.value(), indent + 2, out);
    }
  } else {
    for (auto const& element : value.get_array()) {
      begin_line();
      lay_out(element, indent + 2, out);
    }
  }
  out += '\n';
  out.append(indent, ' ');
  out += value.is_object() ? '}' : ']';
}

}  // namespace

std::string laid_out(json::value const& value) {
  std::string out;
  lay_out(value, 0, out);
  return out + "\n";
}

}  // namespace chorus::http::openapi
