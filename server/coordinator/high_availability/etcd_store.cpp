#include "server/coordinator/high_availability/etcd_store.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <optional>

#include "base/runtime/run_to_end.hpp"
#include "server/coordinator/journal/journal_errc.hpp"

namespace chorus::coordinator {
namespace {

namespace json = boost::json;
using std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(3);  // limit of a write
constexpr auto patience_reading = std::chrono::seconds(30);
// etcd accepts at most 128 operations and 1.5 MiB in a transaction.
constexpr std::size_t operations_max = 100;
constexpr std::size_t transaction_bytes_max = 1 << 20;
constexpr std::size_t piece_bytes = 512 << 10;
constexpr std::int64_t revisions_kept = 1000;  // revisions of etcd's history that compaction keeps
constexpr std::string_view pieces_of_redo = "redo/", redo_is_whole = "redo_is_whole", order = "order";
constexpr int attempts_max = 4;

std::string number_of(std::size_t piece) {
  constexpr std::size_t digits = 4;  // makes the pieces sort like their numbers
  auto const text = std::to_string(piece);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

json::object put(std::string const& key, std::string_view value) {
  return {{"request_put", json::object{{"key", to_base64(key)}, {"value", to_base64(value)}}}};
}

json::object erase(std::string const& key) { return {{"request_delete_range", json::object{{"key", to_base64(key)}}}}; }

json::object erase_all(std::string const& prefix) {
  return {{"request_delete_range",
           json::object{{"key", to_base64(prefix)}, {"range_end", to_base64(end_of_prefix(prefix))}}}};
}

json::object range_of(std::string const& key) { return {{"request_range", json::object{{"key", to_base64(key)}}}}; }

// Returns a number of the key that the i-th range request of a transaction found; 0 if the key does not exist.
std::int64_t number_found(json::object const& answer, std::size_t i, std::string_view number) {
  auto const* const responses = answer.if_contains("responses");
  if (responses == nullptr || !responses->is_array() || responses->as_array().size() <= i) return 0;
  boost::system::error_code error;
  auto const* const pair = responses->as_array()[i].find_pointer("/response_range/kvs/0", error);
  return pair == nullptr || !pair->is_object() ? 0 : number_at(pair->as_object(), number);
}

std::size_t bytes_of(json::value const& operation) {
  auto const* const value = operation.as_object().if_contains("request_put");
  return value == nullptr ? 200 : value->as_object().at("value").as_string().size() + 200;
}

}  // namespace

EtcdStore::EtcdStore(EtcdOptions options, Leadership leadership, std::function<void()> deposed,
                     std::shared_ptr<EtcdTraffic> traffic)
    : etcd_(io_.get_executor(), std::move(options), std::move(traffic)),
      leadership_(std::move(leadership)),
      deposed_(std::move(deposed)),
      prefix_(etcd_.options().prefix()),
      place_("in etcd (" + etcd_.options().endpoints.front() + ", cluster " + etcd_.options().cluster + ")") {}

StoreIdentity EtcdStore::identity() const {
  std::string endpoints;
  for (auto const& one : etcd_.options().endpoints) endpoints += (endpoints.empty() ? "" : ",") + one;
  return {"etcd", std::move(endpoints), etcd_.options().cluster};
}

Error EtcdStore::failed(Error const& error) const {
  return {JournalErrc::cannot_write, "the journal " + place_ + " cannot be written: " + error.detail};
}

std::string EtcdStore::key_of(Row const& row) const {
  return prefix_ + "rows/" + std::string(name(row.table)) + "/" + row.key + "/";
}

// Appends the row's operations to the last transaction, or to new transactions if they do not fit. Pieces are deleted
// one by one: a range from `a/0000` on would have the rows of parameters whose names begin with `a/`.
void EtcdStore::add(Row const& row, std::vector<Operations>& transactions) {
  Operations operations;
  auto const key = key_of(row);
  auto const pieces = row.body ? std::max<std::size_t>(1, (row.body->size() + piece_bytes - 1) / piece_bytes) : 0;
  auto const known = in_pieces_.find(key);
  auto const present = known == in_pieces_.end() ? 1 : known->second;
  for (std::size_t piece = 0; piece < pieces; ++piece)
    operations.push_back(
        put(key + number_of(piece), std::string_view(*row.body).substr(piece * piece_bytes, piece_bytes)));
  for (auto piece = pieces; piece < present; ++piece) operations.push_back(erase(key + number_of(piece)));
  // Kept even if the write fails, because the caller repeats it.
  if (pieces > present) in_pieces_.insert_or_assign(key, pieces);
  for (auto& operation : operations) {
    std::size_t bytes = bytes_of(operation);
    if (!transactions.empty())
      for (auto const& other : transactions.back()) bytes += bytes_of(other);
    if (transactions.empty() || transactions.back().size() >= operations_max || bytes > transaction_bytes_max)
      transactions.emplace_back();
    transactions.back().push_back(std::move(operation));
  }
}

// Every transaction compares the term and the revision of the last transaction, kept by the key `order`. A request that
// was given up, and that etcd receives after a later one, therefore changes nothing.
Status EtcdStore::commit(Operations operations) {
  bool const writes = !operations.empty();
  auto const order_key = prefix_ + std::string(order);
  json::object const same_term{{"target", "CREATE"},
                               {"result", "EQUAL"},
                               {"key", to_base64(leadership_.key)},
                               {"create_revision", std::to_string(leadership_.create_revision)}};
  if (writes) operations.push_back(put(order_key, ""));
  for (int attempt = 0; attempt < attempts_max; ++attempt) {
    json::object const none_between{{"target", "MOD"},
                                    {"result", "EQUAL"},
                                    {"key", to_base64(order_key)},
                                    {"mod_revision", std::to_string(order_revision_)}};
    json::array compares;
    compares.push_back(same_term);
    if (writes) compares.push_back(none_between);
    json::object body{{"compare", std::move(compares)},
                      {"success", operations},
                      {"failure", json::array{range_of(leadership_.key), range_of(order_key)}}};
    auto const answer =
        http::run_to_end(io_, etcd_.call("/v3/kv/txn", std::move(body), steady_clock::now() + patience));
    if (!answer) return failed(answer.error());
    auto const* const succeeded = answer->if_contains("succeeded");
    if (succeeded != nullptr && succeeded->is_bool() && succeeded->as_bool()) {
      if (auto const* header = answer->if_contains("header"); header != nullptr && header->is_object())
        revision_ = number_at(header->as_object(), "revision");
      if (writes) order_revision_ = revision_;
      return ok();
    }
    if (number_found(*answer, 0, "create_revision") != leadership_.create_revision) {
      deposed_();
      return failed(Error(EtcdErrc::not_leader, "another coordinator leads"));
    }
    // An earlier transaction of this leader was executed, but its answer did not arrive.
    order_revision_ = number_found(*answer, 1, "mod_revision");
  }
  return failed(Error(EtcdErrc::unreachable, "requests that were given up came between"));
}

// Several transactions are stored as a redo log first, so that a reader finds all of them or none.
Status EtcdStore::write_all(std::vector<Operations> transactions) {
  if (transactions.size() == 1) return commit(std::move(transactions.front()));
  for (std::size_t piece = 0; piece < transactions.size(); ++piece)
    if (auto const noted = commit(
            {put(prefix_ + std::string(pieces_of_redo) + number_of(piece), json::serialize(transactions[piece]))});
        !noted)
      return noted;
  is_redo_left_ = true;
  if (auto const whole = commit({put(prefix_ + std::string(redo_is_whole), std::to_string(transactions.size()))});
      !whole)
    return whole;
  return finish_what_was_begun();
}

Status EtcdStore::finish_what_was_begun() {
  auto const deadline = steady_clock::now() + patience_reading;
  auto const whole = http::run_to_end(io_, etcd_.get(prefix_ + std::string(redo_is_whole), deadline));
  if (!whole) return failed(whole.error());
  auto const redo = prefix_ + std::string(pieces_of_redo);
  if (*whole) {
    auto const pieces = http::run_to_end(io_, etcd_.list(redo, deadline));
    if (!pieces) return failed(pieces.error());
    std::size_t count = 0;
    auto const& text = (*whole)->value;
    if (std::from_chars(text.data(), text.data() + text.size(), count).ec != std::errc())
      return Error(JournalErrc::damaged, "the journal " + place_ + " is damaged: " + (*whole)->key);
    for (std::size_t piece = 0; piece < std::min(count, pieces->size()); ++piece) {
      boost::system::error_code error;
      auto operations = json::parse((*pieces)[piece].value, error);
      if (error || !operations.is_array())
        return Error(JournalErrc::damaged, "the journal " + place_ + " is damaged: " + (*pieces)[piece].key);
      if (auto const done = commit(std::move(operations.as_array())); !done) return done;
    }
  }
  auto const key = prefix_ + std::string(redo_is_whole);
  if (auto const forgotten = commit({erase(key)}); !forgotten) return forgotten;
  is_redo_left_ = false;
  return commit({erase_all(redo)});
}

Status EtcdStore::write(std::span<Row const> rows) {
  // If this process ended while it replaced a redo log that is whole, the next one would read pieces of both.
  if (is_redo_left_)
    if (auto const finished = finish_what_was_begun(); !finished) return finished;
  std::vector<Operations> transactions;
  for (auto const& row : rows) add(row, transactions);
  if (transactions.empty()) transactions.emplace_back();  // one empty transaction, which compares the term
  auto const written = write_all(std::move(transactions));
  if (written) compact();
  return written;
}

// Ignores a failure: a later write compacts.
void EtcdStore::compact() {
  if (revision_ < compacted_ + 2 * revisions_kept) return;
  auto const until = revision_ - revisions_kept;
  json::object const body{{"revision", std::to_string(until)}};
  static_cast<void>(http::run_to_end(io_, etcd_.call("/v3/kv/compaction", body, steady_clock::now() + patience)));
  compacted_ = until;
  look_at_size();
}

// Ignores a failure: the known size stays.
void EtcdStore::look_at_size() {
  auto const status = http::run_to_end(io_, etcd_.call("/v3/maintenance/status", {}, steady_clock::now() + patience));
  if (status) bytes_ = static_cast<std::uint64_t>(number_at(*status, "dbSize"));
}

// The pieces of a row come in their order. Between those of parameter `a` there are those of `a/0000/...`.
Result<std::vector<Row>> EtcdStore::to_rows(std::vector<EtcdClient::Pair> const& pairs) {
  struct Found {
    std::string body;
    std::size_t pieces = 0;
  };
  std::map<std::pair<Table, std::string>, Found> found;
  auto const start = prefix_.size() + std::string_view("rows/").size();
  for (auto const& [key, value, revision, lease] : pairs) {
    auto const damaged = Error(JournalErrc::damaged, "the journal " + place_ + " is damaged: key " + key);
    auto const end_of_table = key.find('/', start), end_of_key = key.rfind('/');
    if (end_of_table == std::string::npos || end_of_key <= end_of_table) return damaged;
    auto const table = find_table(std::string_view(key).substr(start, end_of_table - start));
    if (!table) return damaged;
    auto& row = found[{*table, key.substr(end_of_table + 1, end_of_key - end_of_table - 1)}];
    if (key.substr(end_of_key + 1) != number_of(row.pieces)) return damaged;
    row.body += value;
    if (++row.pieces > 1) in_pieces_.insert_or_assign(key.substr(0, end_of_key + 1), row.pieces);
  }
  std::vector<Row> rows;
  for (auto& [key, row] : found) rows.push_back({key.first, key.second, std::move(row.body)});
  return rows;
}

Status EtcdStore::preload() {
  auto rows = read();
  if (!rows) return rows.error();
  preloaded_ = std::move(*rows);
  look_at_size();
  return ok();
}

Result<std::vector<Row>> EtcdStore::read() {
  if (preloaded_) return *std::exchange(preloaded_, std::nullopt);
  if (auto const finished = finish_what_was_begun(); !finished) return finished.error();
  auto const pairs = http::run_to_end(io_, etcd_.list(prefix_ + "rows/", steady_clock::now() + patience_reading));
  if (!pairs)
    return Error(JournalErrc::cannot_write, "the journal " + place_ + " cannot be read: " + pairs.error().detail);
  return to_rows(*pairs);
}

}  // namespace chorus::coordinator
