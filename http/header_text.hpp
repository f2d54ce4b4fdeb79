// Header fields as they go out.
#pragma once

#include <string>
#include <string_view>

namespace chorus::http {

// "Name: value\r\n". A value that came from outside must not begin a new field: line ends become spaces.
void append_field(std::string& head, std::string_view name, std::string_view value);

}  // namespace chorus::http
