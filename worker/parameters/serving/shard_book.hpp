// The shards that a worker holds, by parameter and number.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::parameters {

// On the control thread. What the tools refer to outlives stop().
class ShardBook {
 public:
  // worker, incarnation: whom assignments are for.
  ShardBook(ShardTools tools, std::string worker, std::string incarnation);
  ~ShardBook();
  ShardBook(ShardBook const&) = delete;
  ShardBook& operator=(ShardBook const&) = delete;

  // Problems: epoch_fenced, also for another worker or incarnation; invalid_field; unavailable without memory;
  // parameter_lost for a shard that is to be owned and never was here.
  // loaded: what a fresh shard begins with, if not with its initial values.
  [[nodiscard]] std::optional<http::Problem> assign(api::ShardAssignment const& assignment,
                                                    std::unique_ptr<Shard> loaded = nullptr);
  // Problems: unknown_parameter; epoch_fenced if it has been placed here since.
  [[nodiscard]] std::optional<http::Problem> erase(std::string const& parameter, std::uint32_t shard,
                                                   std::uint32_t epoch);

  // Problems: unknown_parameter, and misdirected where other shards of the parameter are here.
  [[nodiscard]] http::Checked<std::shared_ptr<ShardHost>> find(std::string const& parameter, std::uint32_t shard) const;
  // In the order of names and numbers, those behind (`after`, all of its shards).
  [[nodiscard]] std::vector<api::ShardStatus> list(std::string const& after, std::size_t limit) const;

  struct Totals {
    std::size_t owned = 0, backups = 0;
    std::uint64_t owned_bytes = 0, backup_bytes = 0;
    std::size_t backups_behind = 0;  // of shards that are owned here, not in step yet
    // Where rows are created lazily, of the shards of either role: those that exist.
    std::uint64_t owned_rows = 0, backup_rows = 0;
  };
  [[nodiscard]] Totals totals() const;

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
