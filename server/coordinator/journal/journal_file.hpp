// The journal as a file: rows of JSON in SQLite tables, written in transactions that survive the loss of power. The
// format is in docs/reference/journal.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/coordinator/journal/file_identity.hpp"
#include "server/coordinator/journal/journal_errc.hpp"
#include "server/coordinator/journal/store.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace chorus::coordinator {

// Calls block, up to the time that the disk takes. One thread at a time; any thread.
class JournalFile final : public Store {
 public:
  static constexpr int schema_version = 2;

  // Opens it, or makes it where there is nothing; it belongs to this process until it is destroyed. What a crash left
  // is put right as SQLite does it; anything else that is wrong with it is refused. Errors: JournalErrc; the detail
  // says what is wrong and how to go on.
  [[nodiscard]] static Result<std::unique_ptr<JournalFile>> open(std::string const& path);
  ~JournalFile() override;
  JournalFile(JournalFile const&) = delete;
  JournalFile& operator=(JournalFile const&) = delete;

  // Every row, by table and key. Errors: damaged, naming the row.
  [[nodiscard]] Result<std::vector<Row>> read() override;

  // All rows or none; on return they are on the disk. A file that was removed meanwhile is written anew before; one
  // that was replaced is left alone. Errors: cannot_write; the file is as it was.
  [[nodiscard]] Status write(std::span<Row const> rows) override;

  [[nodiscard]] std::string const& place() const override { return path_; }
  [[nodiscard]] StoreIdentity identity() const override { return {"sqlite", path_, ""}; }
  [[nodiscard]] std::uint64_t bytes() const override;  // of the file and what SQLite keeps beside it

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
    void operator()(sqlite3_stmt* statement) const;
  };
  using Database = std::unique_ptr<sqlite3, Closer>;
  using Statement = std::unique_ptr<sqlite3_stmt, Closer>;

  explicit JournalFile(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] Status make();
  [[nodiscard]] Status make_draft(std::string const& draft);
  [[nodiscard]] Status connect();
  [[nodiscard]] Status extend();
  [[nodiscard]] Status check();
  [[nodiscard]] Status prepare();
  [[nodiscard]] Status put(Row const& row);
  // The database is still the file of its name, and its log beside it.
  [[nodiscard]] Status stay_in_place();
  [[nodiscard]] Status write_anew();
  [[nodiscard]] Status run(sqlite3* database, char const* sql);
  [[nodiscard]] Result<std::string> ask(char const* sql);  // the first column of the first row
  [[nodiscard]] Error failed(sqlite3* database, int code) const;
  [[nodiscard]] Error damaged(std::string const& what) const;
  [[nodiscard]] Result<Statement> compile(std::string const& sql);

  std::string const path_;
  std::optional<FileIdentity> file_, log_;  // as they were opened
  Database database_;
  std::map<Table, Statement> put_, erase_;
};

}  // namespace chorus::coordinator
