// Exported rows are read as they were written, and a changed export is refused.
#include "server/coordinator/stores/exported_rows.hpp"

#include <doctest/doctest.h>

#include <sstream>

#include "server/coordinator/journal/journal_errc.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using chorus::testing::mentions;

namespace {

std::string text_of(ExportedRows const& exported) {
  std::string text;
  auto const written = write_export(exported, [&text](std::string_view line) -> Status {
    CHECK(line.find('\n') == line.size() - 1);
    text += line;
    return ok();
  });
  REQUIRE(written.has_value());
  return text;
}

Result<ExportedRows> read_text(std::string const& text) {
  std::istringstream in(text);
  return read_export(in, "moved.jsonl");
}

std::string refusal_of_text(std::string const& text) {
  auto const read = read_text(text);
  REQUIRE(read.has_error());
  return read.error().detail;
}

ExportedRows some_rows() {
  ExportedRows exported;
  exported.release = "0.2.0";
  exported.cluster = "training";
  exported.rows = {{Table::workers, "w0", R"({"self":{"id":"w0"}})"},
                   {Table::groups, "g", std::string("{\"name\":\"\xc3\xa4 \\u0000 \x7f\"}")},
                   {Table::events, "00000000000000000001", ""}};
  return exported;
}

}  // namespace

TEST_CASE("exported rows are read as they were written") {
  auto const exported = some_rows();
  auto const read = read_text(text_of(exported));
  REQUIRE(read.has_value());
  CHECK(read->release == "0.2.0");
  CHECK(read->cluster == "training");
  CHECK(read->rows == exported.rows);
}

TEST_CASE("an export of no rows has a header and a checksum") {
  ExportedRows none;
  none.release = "0.2.0";
  auto const text = text_of(none);
  CHECK(text.starts_with(R"({"format":"chorus-journal","version":1,"release":"0.2.0","rows":0})"));
  CHECK(read_text(text)->rows.empty());
  CHECK(read_text(text)->cluster.empty());
}

TEST_CASE("an export that is cut at any byte is refused") {
  auto const text = text_of(some_rows());
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    CAPTURE(bytes);
    CHECK(read_text(text.substr(0, bytes)).has_error());
  }
  auto const third_line = text.find('\n', text.find('\n') + 1) + 1;
  CHECK(refusal_of_text(text.substr(0, third_line)) == "moved.jsonl was cut short: it ends after line 2 of 5");
}

TEST_CASE("an export with any changed bit is refused") {
  auto const text = text_of(some_rows());
  for (std::size_t byte = 0; byte < text.size(); ++byte)
    for (int bit = 0; bit < 8; ++bit) {
      auto changed = text;
      changed[byte] = static_cast<char>(static_cast<unsigned char>(changed[byte]) ^ (1U << bit));
      CAPTURE(byte);
      CAPTURE(bit);
      CHECK(read_text(changed).has_error());
    }
}

TEST_CASE("the message of a refused export tells what is wrong") {
  auto const text = text_of(some_rows());
  for (auto const* other : {"", "\n", "hello\n", "[]\n", "{}\n",
                            R"({"format":"other","version":1,"rows":0})"
                            "\n"})
    CHECK(refusal_of_text(other) == "moved.jsonl is not an export of a journal (chorus journal export)");
  auto newer = text;
  newer.replace(newer.find("\"version\":1"), 11, "\"version\":2");
  CHECK(refusal_of_text(newer) ==
        "moved.jsonl was written by release 0.2.0 in version 2 of the format, and this release knows version 1");
  CHECK(read_text(newer).error().code == JournalErrc::newer);
  auto other_body = text;
  other_body.replace(other_body.find("w0\\\""), 2, "w1");
  CHECK(refusal_of_text(other_body) == "moved.jsonl is damaged: its checksum is not that of its lines");
  auto unknown_table = text;
  unknown_table.replace(unknown_table.find("\"groups\""), 8, "\"things\"");
  CHECK(refusal_of_text(unknown_table) == "moved.jsonl is damaged: line 3 is not a row that this release knows");
  auto no_row = text;
  no_row.replace(no_row.find("\"groups\""), 8, "12345678");
  CHECK(refusal_of_text(no_row) == "moved.jsonl is damaged: line 3 is not a row");
  CHECK(refusal_of_text(text + "x") == "moved.jsonl is damaged: line 5 is the last, and more follows");
}
