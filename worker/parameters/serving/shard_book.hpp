// The shards of a worker, by parameter and number.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::parameters {

// Used on the control thread. The objects that the tools refer to outlive stop().
class ShardBook {
 public:
  // worker, incarnation: this worker's, which assignments must name.
  ShardBook(ShardTools tools, std::string worker, std::string incarnation);
  ~ShardBook();
  ShardBook(ShardBook const&) = delete;
  ShardBook& operator=(ShardBook const&) = delete;

  // Applies an assignment. loaded: the content of a new shard; null: its initial values. Problems: epoch_fenced, also
  // for another worker or incarnation; invalid_field; unavailable without memory; parameter_lost if this worker becomes
  // the owner of a shard that it never had.
  [[nodiscard]] std::optional<http::Problem> assign(api::ShardAssignment const& assignment,
                                                    std::unique_ptr<Shard> loaded = nullptr);
  // Returns true if this assignment leaves the shard that is here with its data: no content has to be loaded.
  [[nodiscard]] bool keeps(api::ShardAssignment const& assignment) const;
  // Removes a shard. Problems: unknown_parameter; epoch_fenced if the shard has been placed here again since.
  [[nodiscard]] std::optional<http::Problem> erase(std::string const& parameter, std::uint32_t shard,
                                                   std::uint32_t epoch);

  // Problems: unknown_parameter; misdirected if only other shards of the parameter are here.
  [[nodiscard]] http::Checked<std::shared_ptr<ShardHost>> find(std::string const& parameter, std::uint32_t shard) const;
  // Lists the shards of parameters after `after`, in the order of names and numbers. A page has all shards of each of
  // its parameters: `limit` shards at most, unless the first parameter has more.
  [[nodiscard]] api::ShardStatusList list(std::string const& after, std::size_t limit) const;

  struct Totals {
    std::size_t owned = 0, backups = 0;
    std::uint64_t owned_bytes = 0, backup_bytes = 0;
    std::size_t backups_behind = 0;  // backups of owned shards that are not in step
    // Existing rows of shards with lazy rows, by role.
    std::uint64_t owned_rows = 0, backup_rows = 0;
  };
  [[nodiscard]] Totals totals() const;
  // Returns the reason why the log of an owned shard cannot be written; nothing if all can.
  [[nodiscard]] std::optional<std::string> log_failure() const;

  boost::asio::awaitable<void> stop();

 private:
  using Key = std::pair<std::string, std::uint32_t>;
  boost::asio::awaitable<void> retire(std::shared_ptr<ShardHost> host);

  ShardTools const tools_;
  std::string const worker_, incarnation_;
  std::map<Key, std::shared_ptr<ShardHost>> hosts_;
  http::TaskGroup retiring_;
  bool is_stopping_ = false;
};

}  // namespace chorus::parameters
