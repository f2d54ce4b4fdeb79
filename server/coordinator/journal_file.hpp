// The journal as a file: rows of JSON in SQLite tables, written in transactions that survive the loss of power. The
// format is in docs/journal.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"
#include "server/coordinator/journal_errc.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace chorus::coordinator {

enum class Table : std::uint8_t {
  workers,
  epochs,
  groups,
  collectives,
  decisions,
  events,
  counters,
  parameters,
  shards,
  parameter_epochs,
};
inline constexpr std::size_t table_count = 10;
[[nodiscard]] std::string_view name(Table table);

// A row as it is to be from now on; without a body it is not there.
struct Row {
  Table table = Table::workers;
  std::string key;
  std::optional<std::string> body;
  friend bool operator==(Row const&, Row const&) = default;
};

// Calls block, up to the time that the disk takes. One thread at a time; any thread.
class JournalFile {
 public:
  static constexpr int schema_version = 2;

  // Opens it, or makes it where there is nothing; it belongs to this process until it is destroyed. What a crash left
  // is put right as SQLite does it; anything else that is wrong with it is refused. Errors: JournalErrc; the detail
  // says what is wrong and how to go on.
  [[nodiscard]] static Result<std::unique_ptr<JournalFile>> open(std::string const& path);
  ~JournalFile();
  JournalFile(JournalFile const&) = delete;
  JournalFile& operator=(JournalFile const&) = delete;

  // Every row, by table and key. Errors: damaged, naming the row.
  [[nodiscard]] Result<std::vector<Row>> read();

  // All rows or none; on return they are on the disk. Errors: cannot_write; the file is as it was.
  [[nodiscard]] Status write(std::span<Row const> rows);

  [[nodiscard]] std::string const& path() const { return path_; }

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Database = std::unique_ptr<sqlite3, Closer>;
  using Statement = std::unique_ptr<sqlite3_stmt, Closer>;

  explicit JournalFile(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] Status make();
  [[nodiscard]] Status connect();
  [[nodiscard]] Status extend();
  [[nodiscard]] Status check();
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status put(Row const& row);
  [[nodiscard]] Status run(sqlite3* database, char const* sql);
  [[nodiscard]] Result<std::string> ask(char const* sql);  // the first column of the first row
  [[nodiscard]] Error failed(sqlite3* database, int code) const;
  [[nodiscard]] Error damaged(std::string const& what) const;
  [[nodiscard]] Result<Statement> compile(std::string const& sql);

  std::string const path_;
  Database database_;
  std::map<Table, Statement> put_, erase_;
};

}  // namespace chorus::coordinator
