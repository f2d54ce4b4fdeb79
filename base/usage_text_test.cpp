// Messages of CLI11, which would be shown as they are if a new release had others.
#include <doctest/doctest.h>

#include "base/usage_text.hpp"

using chorus::http::usage_text;

TEST_CASE("a usage error names the option and what is wrong with it") {
  CHECK(usage_text("--port: At Most 1 required but received 2") == "--port is given 2 times, expected once");
  CHECK(usage_text("--port: 1 required UINT missing\nRun with --help.\n") ==
        "--port needs a value\nRun with --help.\n");
  CHECK(usage_text("Could not convert: --port = 65536") == "--port: '65536' is not a valid value");
  for (auto const* text : {"", "\n", "--group is required", "--tls-key requires --tls-cert", "Could not convert"})
    CHECK(usage_text(text) == text);
}
