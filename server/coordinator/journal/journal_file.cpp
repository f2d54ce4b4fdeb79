#include "server/coordinator/journal/journal_file.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "collectives/plan/digest.hpp"
#include "server/coordinator/journal/journal_wal.hpp"

namespace chorus::coordinator {
namespace {

constexpr std::size_t tables_of_schema_1 = 7;  // the first of all_tables

constexpr int application_id = 0x43484f52;  // "CHOR"
constexpr char const* how_to_go_on =
    "; restore it from a copy, or move it (and its -wal file) away to begin with an empty one, which forgets groups, "
    "parameters, collectives and Idempotency-Keys";

// Detects a changed bit, and a row copied to another key or table.
std::int64_t hash_of(Table table, std::string_view key, std::string_view body) {
  auto const text = name(table);
  auto digest = plan::digest(text.data(), text.size(), 0);
  digest = plan::digest(key.data(), key.size(), digest);
  return std::bit_cast<std::int64_t>(plan::digest(body.data(), body.size(), digest));
}

Status bind_text(sqlite3_stmt* statement, int index, std::string_view text) {
  auto const size = static_cast<sqlite3_uint64>(text.size());
  if (sqlite3_bind_text64(statement, index, text.data(), size, SQLITE_STATIC, SQLITE_UTF8) == SQLITE_OK) return ok();
  return Error(JournalErrc::cannot_write, "a row is too large");
}

std::string_view text_of(sqlite3_stmt* statement, int column) {
  auto const* const text = reinterpret_cast<char const*>(sqlite3_column_text(statement, column));
  return text == nullptr ? std::string_view()
                         : std::string_view(text, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

std::string making(std::string_view table) {
  return "CREATE TABLE " + std::string(table) +
         "(key TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL, hash INTEGER NOT NULL) WITHOUT ROWID;";
}

std::string directory_of(std::string const& path) {
  auto const parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? std::string(".") : parent;
}

// Returns what the operator can do about the error, or "".
std::string how_to_mend(std::string const& path, int code, int reason) {
  auto const directory = directory_of(path);
  if ((code & 0xff) == SQLITE_FULL || reason == ENOSPC || reason == EDQUOT)
    return "; make room in " + directory + ", or give it a larger volume: until then nothing new can be launched";
  // SQLite does not report the reason of a write that ends at the limit.
  rlimit limit{};
  bool const is_limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  if (reason == EFBIG || (is_limited && (code & 0xff) == SQLITE_IOERR))
    return "; files of this process may have " + std::to_string(limit.rlim_cur) +
           " bytes at most (ulimit -f, LimitFSIZE of systemd): give the coordinator a higher limit and start it again; "
           "until then nothing new can be launched";
  if (reason == ENOENT || reason == ENOTDIR)
    return "; the directory " + directory + " has to exist: make it, or mount a volume there";
  if (reason == EACCES || reason == EPERM || reason == EROFS)
    return "; user " + std::to_string(::geteuid()) + " has to be allowed to write to " + directory +
           ": mount a volume there that is its own";
  return "";
}

// Makes the name of a new file durable.
void sync_directory_of(std::string const& path) {
  auto const directory = ::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  ::fsync(directory);
  ::close(directory);
}

Error cannot_open(std::string const& path, int reason) {
  return {JournalErrc::cannot_write,
          "the journal " + path + " cannot be opened: " + std::strerror(reason) + how_to_mend(path, SQLITE_OK, reason)};
}

// Checks before SQLite does: SQLite retries a refused open as a read, and reports only the second failure.
Status may_write_beside(std::string const& path) {
  if (::faccessat(AT_FDCWD, directory_of(path).c_str(), W_OK | X_OK, AT_EACCESS) == 0) return ok();
  return cannot_open(path, errno);
}

// Checks the file, and the directory for its log.
Status may_write(std::string const& path) {
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK | W_OK, AT_EACCESS) == 0) return may_write_beside(path);
  return Error(JournalErrc::cannot_write, "the journal " + path + " cannot be written: " + std::strerror(errno) +
                                              "; user " + std::to_string(::geteuid()) +
                                              " has to be allowed to read and write it");
}

// SQLite would replay the log of a file that is gone onto a new one.
Status may_be_made(std::string const& path) {
  std::error_code missing;
  if (auto const size = std::filesystem::file_size(path + "-wal", missing); missing || size == 0) return ok();
  return Error(JournalErrc::damaged, "the journal " + path + " is missing, and its log " + path +
                                         "-wal is there: bring the file back, or move the log away, too, to begin with "
                                         "an empty journal, which forgets groups, parameters, collectives and "
                                         "Idempotency-Keys");
}

Status sync_file(std::string const& path) {
  auto const file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  auto const synced = file >= 0 && ::fsync(file) == 0;
  auto const reason = errno;
  if (file >= 0) ::close(file);
  if (synced) return ok();
  return Error(JournalErrc::cannot_write, path + ": " + std::strerror(reason));
}

// Removes a draft and the files that SQLite keeps beside it.
void remove_draft(std::string const& draft) {
  for (auto const* rest : {"", "-journal", "-wal"}) std::remove((draft + rest).c_str());
}

Status put_in_place(std::string const& draft, std::string const& path) {
  if (std::rename(draft.c_str(), path.c_str()) != 0)
    return Error(JournalErrc::cannot_write,
                 "the journal " + path + " cannot be made: " + std::string(std::strerror(errno)));
  sync_directory_of(path);
  return ok();
}

}  // namespace

void JournalFile::Closer::operator()(sqlite3* database) const { sqlite3_close(database); }
void JournalFile::Closer::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

std::uint64_t JournalFile::bytes() const {
  std::uint64_t bytes = 0;
  for (auto const* suffix : {"", "-wal", "-shm"}) {
    std::error_code missing;
    if (auto const size = std::filesystem::file_size(path_ + suffix, missing); !missing) bytes += size;
  }
  return bytes;
}

JournalFile::~JournalFile() = default;

Error JournalFile::damaged(std::string const& what) const {
  return {JournalErrc::damaged, "the journal " + path_ + " is damaged: " + what + how_to_go_on};
}

Error JournalFile::failed(sqlite3* database, int code) const {
  auto const said = std::string(database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return {JournalErrc::not_a_journal, path_ + " is not a journal of Chorus: " + said + how_to_go_on};
    case SQLITE_CORRUPT:
      return damaged(said);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {JournalErrc::in_use, "the journal " + path_ + " is in use: another coordinator has it open"};
    default: {
      auto const reason = database != nullptr ? sqlite3_system_errno(database) : 0;
      return {JournalErrc::cannot_write, "the journal " + path_ + " cannot be written: " + said +
                                             (reason != 0 ? std::string(" (") + std::strerror(reason) + ")" : "") +
                                             how_to_mend(path_, code, reason)};
    }
  }
}

Result<std::unique_ptr<JournalFile>> JournalFile::open(std::string const& path) {
  std::unique_ptr<JournalFile> file(new JournalFile(path));
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    if (errno != ENOENT) return cannot_open(path, errno);
    if (auto alone = may_be_made(path); !alone) return alone.error();
    if (auto allowed = may_write_beside(path); !allowed) return allowed.error();
    if (auto made = file->make(); !made) return made.error();
  } else if (!S_ISREG(found.st_mode)) {
    return Error(JournalErrc::not_a_journal, path + " is not a journal of Chorus: it is " +
                                                 (S_ISDIR(found.st_mode) ? "a directory" : "not a file") +
                                                 "; name a file in it, which is made if it does not exist");
  } else if (found.st_size == 0) {
    return file->damaged("it is empty, which a journal never is");
  }
  if (auto allowed = may_write(path); !allowed) return allowed.error();
  if (auto const damage = damage_of_log(path + "-wal")) return file->damaged(*damage);
  if (auto connected = file->connect(); !connected) return connected.error();
  if (auto checked = file->check(); !checked) return checked.error();
  if (auto prepared = file->prepare(); !prepared) return prepared.error();
  return file;
}

// Makes the file under another name and renames it when it is whole: a file under the right name is always a journal.
Status JournalFile::make() {
  auto const draft = path_ + ".new";
  remove_draft(draft);
  auto made = make_draft(draft);
  if (made) made = put_in_place(draft, path_);
  if (!made) remove_draft(draft);
  return made;
}

Status JournalFile::make_draft(std::string const& draft) {
  sqlite3* opened = nullptr;
  auto const code = sqlite3_open_v2(draft.c_str(), &opened,
                                    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(opened);
  if (code != SQLITE_OK) return failed(opened, code);
  auto sql = "PRAGMA synchronous=FULL; BEGIN; PRAGMA application_id=" + std::to_string(application_id) +
             "; PRAGMA user_version=" + std::to_string(schema_version) + ";";
  for (auto const table : all_tables) sql += making(name(table));
  return run(opened, (sql + "COMMIT").c_str());
}

Status JournalFile::connect() {
  sqlite3* opened = nullptr;
  auto const code = sqlite3_open_v2(path_.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  database_.reset(opened);
  if (code != SQLITE_OK) return failed(opened, code);
  sqlite3_extended_result_codes(opened, 1);
  // An exclusive lock keeps the log's index in this process's memory, and other processes from opening the file.
  if (auto done = run(opened, "PRAGMA locking_mode=EXCLUSIVE"); !done) return done;
  auto const application = ask("PRAGMA application_id");
  if (!application) return application.error();
  if (*application != std::to_string(application_id))
    return Error(JournalErrc::not_a_journal,
                 path_ + " is not a journal of Chorus, but a database of another program" + how_to_go_on);
  auto const schema = ask("PRAGMA user_version");
  if (!schema) return schema.error();
  if (*schema != "1" && *schema != std::to_string(schema_version))
    return Error(JournalErrc::newer, "the journal " + path_ + " was written by another release: its schema is " +
                                         *schema + ", this release knows " + std::to_string(schema_version) +
                                         "; start the release that wrote it, or move it away");
  if (sqlite3_db_readonly(opened, "main") == 1)
    return Error(JournalErrc::cannot_write, "the journal " + path_ + " cannot be written: it is read-only");
  auto const mode = ask("PRAGMA journal_mode=WAL");
  if (!mode) return mode.error();
  if (*mode != "wal") return Error(JournalErrc::cannot_write, "the journal " + path_ + " cannot be kept in WAL mode");
  auto const begun = run(opened, "PRAGMA synchronous=FULL; PRAGMA trusted_schema=OFF; BEGIN IMMEDIATE; COMMIT");
  if (!begun) return begun;
  file_ = identity_of(path_);
  log_ = identity_of(path_ + "-wal");
  return *schema == "1" ? extend() : ok();
}

Status JournalFile::stay_in_place() {
  if (put_.empty()) {  // the file was written anew, and could not be opened then
    if (auto connected = connect(); !connected) return connected;
    return prepare();
  }
  auto const file = identity_of(path_);
  if (file == file_ && identity_of(path_ + "-wal") == log_) return ok();
  if (!file || file == file_) return write_anew();
  return Error(JournalErrc::cannot_write,
               "the journal " + path_ +
                   " was replaced by another file while this coordinator runs: move that file away, and the journal "
                   "is written anew; or stop the coordinator, and start it with that file");
}

// The open database still has all rows, even if its file has lost its name.
Status JournalFile::write_anew() {
  auto const draft = path_ + ".new";
  remove_draft(draft);
  auto vacuum = compile("VACUUM INTO ?1");
  if (!vacuum) return vacuum.error();
  if (auto bound = bind_text(vacuum->get(), 1, draft); !bound) return bound;
  if (auto const code = sqlite3_step(vacuum->get()); code != SQLITE_DONE) return failed(database_.get(), code);
  vacuum->reset();
  if (auto synced = sync_file(draft); !synced)
    return Error(JournalErrc::cannot_write,
                 "the journal " + path_ + " cannot be written anew: " + synced.error().detail);
  // Closing the database removes any log under its name, so it comes before the rename.
  put_.clear();
  erase_.clear();
  database_.reset();
  if (auto placed = put_in_place(draft, path_); !placed) return placed;
  if (auto connected = connect(); !connected) return connected;
  return prepare();
}

// Adds the tables that schema 1 did not have.
Status JournalFile::extend() {
  if (auto checked = check(); !checked) return checked;
  auto sql = std::string("BEGIN IMMEDIATE;");
  for (auto i = tables_of_schema_1; i < all_tables.size(); ++i) sql += making(name(all_tables.at(i)));
  return run(database_.get(), (sql + "PRAGMA user_version=" + std::to_string(schema_version) + ";COMMIT").c_str());
}

Status JournalFile::check() {
  auto const verdict = ask("PRAGMA integrity_check(1)");
  if (!verdict) return verdict.error();
  if (*verdict != "ok") return damaged(*verdict);
  return ok();
}

Status JournalFile::prepare() {
  for (auto const table : all_tables) {
    auto const of = std::string(name(table));
    auto put = compile("INSERT INTO " + of +
                       "(key, body, hash) VALUES(?1, ?2, ?3)"
                       " ON CONFLICT(key) DO UPDATE SET body=excluded.body, hash=excluded.hash");
    if (!put) return put.error();
    auto erase = compile("DELETE FROM " + of + " WHERE key=?1");
    if (!erase) return erase.error();
    put_.emplace(table, std::move(*put));
    erase_.emplace(table, std::move(*erase));
  }
  return ok();
}

Result<JournalFile::Statement> JournalFile::compile(std::string const& sql) {
  sqlite3_stmt* compiled = nullptr;
  auto const code = sqlite3_prepare_v3(database_.get(), sql.c_str(), static_cast<int>(sql.size()),
                                       SQLITE_PREPARE_PERSISTENT, &compiled, nullptr);
  if (code != SQLITE_OK)
    return code == SQLITE_ERROR ? damaged(sqlite3_errmsg(database_.get())) : failed(database_.get(), code);
  return Statement(compiled);
}

Status JournalFile::run(sqlite3* database, char const* sql) {
  auto const code = sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return failed(database, code);
  return ok();
}

Result<std::string> JournalFile::ask(char const* sql) {
  auto statement = compile(sql);
  if (!statement) return statement.error();
  auto const code = sqlite3_step(statement->get());
  if (code != SQLITE_ROW) return failed(database_.get(), code);
  return std::string(text_of(statement->get(), 0));
}

Result<std::vector<Row>> JournalFile::read() {
  std::vector<Row> rows;
  for (auto const table : all_tables) {
    auto statement = compile("SELECT key, body, hash FROM " + std::string(name(table)) + " ORDER BY key");
    if (!statement) return statement.error();
    auto code = sqlite3_step(statement->get());
    for (; code == SQLITE_ROW; code = sqlite3_step(statement->get())) {
      auto const key = text_of(statement->get(), 0);
      auto const body = text_of(statement->get(), 1);
      if (hash_of(table, key, body) != sqlite3_column_int64(statement->get(), 2))
        return damaged("row '" + std::string(key) + "' of table " + std::string(name(table)) +
                       " does not have the hash that was written with it");
      rows.push_back({table, std::string(key), std::string(body)});
    }
    if (code != SQLITE_DONE) return failed(database_.get(), code);
  }
  return rows;
}

Status JournalFile::put(Row const& row) {
  auto* const statement = (row.body ? put_ : erase_).at(row.table).get();
  auto bound = bind_text(statement, 1, row.key);
  if (bound && row.body) bound = bind_text(statement, 2, *row.body);
  if (bound && row.body) sqlite3_bind_int64(statement, 3, hash_of(row.table, row.key, *row.body));
  auto const code = bound ? sqlite3_step(statement) : SQLITE_DONE;
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  if (!bound) return bound;
  if (code != SQLITE_DONE) return failed(database_.get(), code);
  return ok();
}

Status JournalFile::write(std::span<Row const> rows) {
  if (auto placed = stay_in_place(); !placed) return Error(JournalErrc::cannot_write, placed.error().detail);
  auto* const database = database_.get();
  auto done = run(database, "BEGIN IMMEDIATE");
  for (auto const& row : rows) {
    if (!done) break;
    done = put(row);
  }
  if (done) done = run(database, "COMMIT");
  // After some failures SQLite has ended the transaction by itself.
  if (!done && sqlite3_get_autocommit(database) == 0) sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr);
  if (!done) return Error(JournalErrc::cannot_write, done.error().detail);
  return ok();
}

}  // namespace chorus::coordinator
