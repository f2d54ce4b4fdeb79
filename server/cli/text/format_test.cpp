#include <doctest/doctest.h>

#include <sstream>

#include "server/cli/connection/client.hpp"
#include "server/cli/output/table.hpp"
#include "server/cli/text/format.hpp"
#include "server/cli/text/units.hpp"

using namespace chorus;
using namespace chorus::cli;

TEST_CASE("sizes are powers of 1024") {
  CHECK(parse_bytes("0").value() == 0);
  CHECK(parse_bytes("4").value() == 4);
  CHECK(parse_bytes("1K").value() == 1024);
  CHECK(parse_bytes("64M").value() == 64ULL << 20);
  CHECK(parse_bytes("2G").value() == 2ULL << 30);
  CHECK(parse_bytes("3T").value() == 3ULL << 40);
  CHECK(parse_bytes("18446744073709551615").value() == ~0ULL);
}

TEST_CASE("text that is not a size is refused, also a size above 64 bits") {
  for (auto const* text : {"", "K", "-1", "+1", " 1", "1 ", "1k", "1MB", "1.5M", "0x10", "18446744073709551616",
                           "16777216T", "99999999999999999999999K"}) {
    CAPTURE(text);
    REQUIRE(parse_bytes(text).has_error());
    CHECK(parse_bytes(text).error().detail.find("'" + std::string(text) + "'") == 0);
  }
  CHECK(parse_bytes("16777215T").value() == 16777215ULL << 40);
}

TEST_CASE("a list has a part before and behind every comma") {
  auto const digit = [](std::string_view text) { return parse_number(text, 0, 9); };
  CHECK(parse_list("4", digit).value() == std::vector<std::uint64_t>{4});
  CHECK(parse_list("4,0,3", digit).value() == std::vector<std::uint64_t>{4, 0, 3});
  for (auto const* text : {"", ",", "1,", ",1", "1,,2"}) {
    CAPTURE(text);
    CHECK(parse_list(text, digit).error().detail == "'" + std::string(text) + "' is a list with an empty part");
  }
  CHECK(parse_list("1,10", digit).error().detail == "'10' is not a whole number from 0 to 9");
}

TEST_CASE("durations have a unit and a limit") {
  CHECK(parse_duration("0s").value() == std::chrono::milliseconds(0));
  CHECK(parse_duration("500ms").value() == std::chrono::milliseconds(500));
  CHECK(parse_duration("30s").value() == std::chrono::seconds(30));
  CHECK(parse_duration("5m").value() == std::chrono::minutes(5));
  CHECK(parse_duration("24h").value() == std::chrono::hours(24));
  for (auto const* text : {"", "30", "s", "-1s", "1.5s", "1 s", "1d", "25h", "86400001ms", "99999999999999999999s"}) {
    CAPTURE(text);
    CHECK(parse_duration(text).has_error());
  }
}

TEST_CASE("numbers stay within their limits") {
  CHECK(parse_number("8", 1, 8).value() == 8);
  CHECK(parse_number("9", 1, 8).error().detail == "'9' is not a whole number from 1 to 8");
  for (auto const* text : {"0", "", "-1", "1x", "1K", "18446744073709551617"}) {
    CAPTURE(text);
    CHECK(parse_number(text, 1, 8).has_error());
  }
}

TEST_CASE("amounts are written in binary units, with one decimal if it is not zero") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1023) == "1023 B");
  CHECK(format_bytes(1024) == "1 KiB");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(64ULL << 20) == "64 MiB");
  CHECK(format_bytes((1ULL << 20) - 1) == "1 MiB");
  CHECK(format_bytes(123ULL << 30) == "123 GiB");
  CHECK(format_bytes(~0ULL) == "16 EiB");
}

TEST_CASE("durations and rates are written for people") {
  CHECK(format_seconds(0) == "0 ns");
  CHECK(format_seconds(850e-9) == "850 ns");
  CHECK(format_seconds(12.5e-6) == "12.5 us");
  CHECK(format_seconds(1.9e-3) == "1.9 ms");
  CHECK(format_seconds(0.99999) == "1 s");
  CHECK(format_seconds(2.345) == "2.35 s");
  CHECK(format_seconds(200) == "3 min 20 s");
  CHECK(format_rate(0) == "0 B/s");
  CHECK(format_rate(3.2e9) == "3.2 GB/s");
  CHECK(format_rate(999.96e6) == "1 GB/s");
  CHECK(format_count(0, "group") == "0 groups");
  CHECK(format_count(1, "group") == "1 group");
}

TEST_CASE("a table is as wide as its widest cell, with numbers to the right") {
  Table table({{"RANK", Align::right}, {"WORKER"}, {"SENT", Align::right}});
  table.add({"0", "w0", "64 MiB"});
  table.add({"10", "wörker-10", ""});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() ==
        "RANK  WORKER       SENT\n"
        "   0  w0         64 MiB\n"
        "  10  wörker-10       -\n");
}

TEST_CASE("a table has no trailing blanks") {
  Table table({{"A"}, {"LAST"}});
  table.add({"a", "x"});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() == "A  LAST\na  x\n");
}

TEST_CASE("roles, places and algorithms are written in a few letters") {
  CHECK(format_role({"tree", "root", {1, 2}, {1, 2}}) == "root 1,2");
  CHECK(format_role({"ring", "member", {1}, {3}}) == "member 3>1");
  CHECK(format_role({"ring", "member", {}, {}}) == "member");
  CHECK(format_role({"centralized", "root", {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}}) ==
        "root 1,2,3,4,5,6+2");
  CHECK(format_locality({}) == "");
  CHECK(format_locality({"eu", "", "r7", "h3"}) == "eu/-/r7/h3");
  CHECK(format_algorithm("ring", 0, 2, {}) == "ring");
  CHECK(format_algorithm("centralized", 3, 2, {}) == "centralized root 3");
  CHECK(format_algorithm("torus_2d", 0, 2, {2, 4}) == "torus_2d shape 2,4");
  CHECK(format_algorithm("tree", 0, 4, {}) == "tree arity 4 root 0");
  CHECK(format_algorithm("of_another_release", 0, 2, {}) == "of_another_release arity 2 root 0");
}

TEST_CASE("user input cannot leave its segment of a path") {
  CHECK(percent_encode("a-b_c.D~9") == "a-b_c.D~9");
  CHECK(percent_encode("a/../b?c#d e%") == "a%2F..%2Fb%3Fc%23d%20e%25");
  CHECK(percent_encode("\xc3\xb6") == "%C3%B6");
}
