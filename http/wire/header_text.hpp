// Writes header fields.
#pragma once

#include <string>
#include <string_view>

namespace chorus::http {

// Appends "Name: value\r\n". Line ends in the value become spaces: a value from outside must not begin a new field.
void append_field(std::string& head, std::string_view name, std::string_view value);

}  // namespace chorus::http
