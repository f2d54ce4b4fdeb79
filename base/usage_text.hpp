// What CLI11 says of a command line, in the words of the programs here.
#pragma once

#include <string>
#include <string_view>

namespace chorus::http {

// Says in the first line what is wrong with the option that it names: "--port is given 2 times, expected once" for
// "--port: At Most 1 required but received 2". Lines that need no other words stay.
[[nodiscard]] std::string usage_text(std::string_view text);

}  // namespace chorus::http
