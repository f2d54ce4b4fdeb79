#include "server/coordinator/stores/exported_rows.hpp"

#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <istream>

#include "collectives/plan/digest.hpp"
#include "server/coordinator/journal/journal_errc.hpp"

namespace chorus::coordinator {
namespace {

namespace json = boost::json;

constexpr std::string_view format = "chorus-journal";
constexpr std::uint64_t version = 1;

std::uint64_t add(std::uint64_t digest, std::string_view line) {
  return plan::digest(line.data(), line.size(), digest);
}

std::string end_of_export(std::uint64_t digest) {
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(digest));
  return json::serialize(json::object{{"checksum", std::string("xxh3:") + hex.data()}});
}

std::optional<json::object> parse_line(std::string const& line) {
  boost::system::error_code error;
  auto value = json::parse(line, error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.as_object());
}

std::optional<std::string> text_at(json::object const& object, std::string_view field) {
  auto const* const found = object.if_contains(field);
  if (found == nullptr || !found->is_string()) return std::nullopt;
  return std::string(found->as_string());
}

std::optional<std::uint64_t> count_at(json::object const& object, std::string_view field) {
  auto const* const found = object.if_contains(field);
  if (found == nullptr) return std::nullopt;
  boost::system::error_code error;
  auto const number = found->to_number<std::uint64_t>(error);
  if (error) return std::nullopt;
  return number;
}

// Reads one export line by line.
class Reader {
 public:
  Reader(std::istream& in, std::string const& name) : in_(in), name_(name) {}

  Result<ExportedRows> read() {
    ExportedRows exported;
    auto const rows = read_header(exported);
    if (!rows) return rows.error();
    for (std::uint64_t i = 0; i < *rows; ++i) {
      auto row = read_row(*rows);
      if (!row) return row.error();
      exported.rows.push_back(std::move(*row));
    }
    if (auto const ended = read_end(*rows); !ended) return ended.error();
    return exported;
  }

 private:
  // False at the end of the text, and for a line without its end.
  bool next() {
    if (!std::getline(in_, line_) || in_.eof()) return false;
    ++number_;
    return true;
  }

  void take() { digest_ = add(digest_, line_ + '\n'); }

  Error error(JournalErrc code, std::string const& what) const { return {code, name_ + " " + what}; }
  Error changed(std::string const& what) const {
    return error(JournalErrc::damaged, "is damaged: line " + std::to_string(number_) + " " + what);
  }
  Error cut_short(std::uint64_t rows) const {
    return error(JournalErrc::damaged,
                 "was cut short: it ends after line " + std::to_string(number_) + " of " + std::to_string(rows + 2));
  }

  Result<std::uint64_t> read_header(ExportedRows& exported) {
    auto const header = next() ? parse_line(line_) : std::nullopt;
    if (!header || text_at(*header, "format") != format)
      return error(JournalErrc::not_a_journal, "is not an export of a journal (chorus journal export)");
    take();
    exported.release = text_at(*header, "release").value_or("");
    exported.cluster = text_at(*header, "cluster").value_or("");
    auto const found = count_at(*header, "version");
    if (found != version)
      return error(JournalErrc::newer, "was written by release " + exported.release + " in version " +
                                           (found ? std::to_string(*found) : "?") +
                                           " of the format, and this release knows version " + std::to_string(version));
    auto const rows = count_at(*header, "rows");
    if (!rows) return changed("does not tell the number of rows");
    return *rows;
  }

  Result<Row> read_row(std::uint64_t rows) {
    if (!next()) return cut_short(rows);
    take();
    auto const object = parse_line(line_);
    auto const table_name = object ? text_at(*object, "table") : std::nullopt;
    if (!table_name) return changed("is not a row");
    auto const table = find_table(*table_name);
    auto key = text_at(*object, "key"), body = text_at(*object, "body");
    if (!table || !key || !body) return changed("is not a row that this release knows");
    return Row{*table, std::move(*key), std::move(*body)};
  }

  Status read_end(std::uint64_t rows) {
    if (!next()) return cut_short(rows);
    if (line_ != end_of_export(digest_))
      return error(JournalErrc::damaged, "is damaged: its checksum is not that of its lines");
    if (in_.peek() != std::istream::traits_type::eof()) return changed("is the last, and more follows");
    return ok();
  }

  std::istream& in_;
  std::string const& name_;
  std::string line_;
  std::uint64_t number_ = 0;
  std::uint64_t digest_ = 0;
};

}  // namespace

Status write_export(ExportedRows const& exported, std::function<Status(std::string_view)> const& write) {
  std::uint64_t digest = 0;
  auto const put = [&](json::object const& object) {
    auto const line = json::serialize(object) + '\n';
    digest = add(digest, line);
    return write(line);
  };
  json::object header{{"format", format}, {"version", version}, {"release", exported.release}};
  if (!exported.cluster.empty()) header["cluster"] = exported.cluster;
  header["rows"] = exported.rows.size();
  if (auto const written = put(header); !written) return written;
  for (auto const& row : exported.rows) {
    json::object const object{{"table", name(row.table)}, {"key", row.key}, {"body", row.body.value_or("")}};
    if (auto const written = put(object); !written) return written;
  }
  return write(end_of_export(digest) + '\n');
}

Result<ExportedRows> read_export(std::istream& in, std::string const& name) { return Reader(in, name).read(); }

}  // namespace chorus::coordinator
