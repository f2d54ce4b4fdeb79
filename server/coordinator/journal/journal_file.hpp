// The journal as a file: rows of JSON in SQLite tables, written in transactions that survive a loss of power. Format:
// docs/reference/journal.md.
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

// Owned by the Journal, which calls it on its own thread. Calls block for as long as the disk takes. One thread at a
// time; any thread.
class JournalFile final : public Store {
 public:
  static constexpr int schema_version = 2;

  // Opens the file or creates it. The file belongs to this process until the object is destroyed. SQLite repairs what a
  // crash left; any other damage is refused. Errors: JournalErrc; the detail says what is wrong and how to go on.
  [[nodiscard]] static Result<std::unique_ptr<JournalFile>> open(std::string const& path);
  ~JournalFile() override;
  JournalFile(JournalFile const&) = delete;
  JournalFile& operator=(JournalFile const&) = delete;

  // Returns every row, by table and key. Errors: damaged, naming the row.
  [[nodiscard]] Result<std::vector<Row>> read() override;

  // Writes all rows or none; on return they are durable. A removed file is first written anew; a file that replaced it
  // is left alone. Errors: cannot_write; the file is unchanged.
  [[nodiscard]] Status write(std::span<Row const> rows) override;

  [[nodiscard]] std::string const& place() const override { return path_; }
  [[nodiscard]] StoreIdentity identity() const override { return {"sqlite", path_, ""}; }
  [[nodiscard]] std::uint64_t bytes() const override;  // of the file and of the files that SQLite keeps beside it

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
  // Checks that the path still leads to the open database, and the log's path to its log. Writes a removed file anew.
  [[nodiscard]] Status stay_in_place();
  [[nodiscard]] Status write_anew();
  [[nodiscard]] Status run(sqlite3* database, char const* sql);
  [[nodiscard]] Result<std::string> ask(char const* sql);  // the first column of the first row
  [[nodiscard]] Error failed(sqlite3* database, int code) const;
  [[nodiscard]] Error damaged(std::string const& what) const;
  [[nodiscard]] Result<Statement> compile(std::string const& sql);

  std::string const path_;
  std::optional<FileIdentity> file_, log_;  // when they were opened
  Database database_;
  std::map<Table, Statement> put_, erase_;
};

}  // namespace chorus::coordinator
