// The interface of stores of the coordinator's state: rows by table and key, written in transactions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/result.hpp"

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
inline constexpr std::array all_tables{Table::workers,   Table::epochs,          Table::groups,   Table::collectives,
                                       Table::decisions, Table::events,          Table::counters, Table::parameters,
                                       Table::shards,    Table::parameter_epochs};
[[nodiscard]] std::string_view name(Table table);
[[nodiscard]] std::optional<Table> find_table(std::string_view name);

// A row to write; a row without body is deleted.
struct Row {
  Table table = Table::workers;
  std::string key;
  std::optional<std::string> body;
  friend bool operator==(Row const&, Row const&) = default;
};

// Description of a store, for people and for GET /v1/status.
struct StoreIdentity {
  std::string kind;     // "sqlite", "etcd"
  std::string place;    // path of the file; endpoints of etcd, separated by commas
  std::string cluster;  // name of the cluster in etcd; "" for a file
};

// Owned by the Journal. Calls block for as long as disk or network take. One thread at a time; any thread.
class Store {
 public:
  Store() = default;
  virtual ~Store() = default;
  Store(Store const&) = delete;
  Store& operator=(Store const&) = delete;

  // Returns every row, by table and key. Call before write(). Errors: JournalErrc::damaged, naming the row;
  // cannot_write if the store does not answer.
  [[nodiscard]] virtual Result<std::vector<Row>> read() = 0;

  // Writes all rows or none, even if this process or the store fails meanwhile; on return they are durable. An empty
  // write checks that the store accepts writes. Errors: JournalErrc::cannot_write; the caller writes the same rows
  // again.
  [[nodiscard]] virtual Status write(std::span<Row const> rows) = 0;

  // Returns the place of the rows, which messages name after "the journal ".
  [[nodiscard]] virtual std::string const& place() const = 0;
  // Constant. Any thread.
  [[nodiscard]] virtual StoreIdentity identity() const = 0;
  // Returns the size of the store; 0 if unknown. Any thread.
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

}  // namespace chorus::coordinator
