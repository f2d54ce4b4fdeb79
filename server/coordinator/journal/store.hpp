// The interface of what keeps the coordinator's state: rows by table and key, written in transactions.
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

// A row as it is to be from now on; without a body it is not there.
struct Row {
  Table table = Table::workers;
  std::string key;
  std::optional<std::string> body;
  friend bool operator==(Row const&, Row const&) = default;
};

// What a store is, for people and for GET /v1/status.
struct StoreIdentity {
  std::string kind;     // "sqlite", "etcd"
  std::string place;    // the file; endpoints of etcd, with commas
  std::string cluster;  // name of the cluster in etcd; "" for a file
};

// Calls block, up to the time that a disk or a network takes. One thread at a time; any thread.
class Store {
 public:
  Store() = default;
  virtual ~Store() = default;
  Store(Store const&) = delete;
  Store& operator=(Store const&) = delete;

  // Every row, by table and key. Call it before write(). Errors: JournalErrc::damaged, naming the row; cannot_write
  // where nobody answers.
  [[nodiscard]] virtual Result<std::vector<Row>> read() = 0;

  // Writes all rows or none, also if this process or the store fails meanwhile; on return they are durable. An empty
  // write checks that the store can be written. Errors: JournalErrc::cannot_write; the caller writes the same rows
  // again.
  [[nodiscard]] virtual Status write(std::span<Row const> rows) = 0;

  // The place of the rows, as messages name it behind "the journal ".
  [[nodiscard]] virtual std::string const& place() const = 0;
  // Does not change. Any thread.
  [[nodiscard]] virtual StoreIdentity identity() const = 0;
  // Size of the store; 0 if it is not known. Any thread.
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
};

}  // namespace chorus::coordinator
