// The journal's rows in etcd. Every write is a transaction that compares the leader's term, so that a former leader
// writes nothing, even if it was stopped in between. docs/reference/etcd.md describes the keys.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/json/array.hpp>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/coordinator/high_availability/election.hpp"
#include "server/coordinator/high_availability/etcd_client.hpp"
#include "server/coordinator/journal/store.hpp"

namespace chorus::coordinator {

// Owned by the Journal, which calls it on its own thread, or by HeldCluster.
class EtcdStore final : public Store {
 public:
  // `deposed` is called on the writing thread when a write finds that another coordinator leads.
  EtcdStore(EtcdOptions options, Leadership leadership, std::function<void()> deposed,
            std::shared_ptr<EtcdTraffic> traffic = nullptr);

  // Reads the rows, so that the next read() does not wait. Errors: as read().
  [[nodiscard]] Status preload();
  [[nodiscard]] Result<std::vector<Row>> read() override;
  [[nodiscard]] Status write(std::span<Row const> rows) override;
  [[nodiscard]] std::string const& place() const override { return place_; }
  [[nodiscard]] StoreIdentity identity() const override;
  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }  // size of the whole etcd database

 private:
  using Operations = boost::json::array;

  [[nodiscard]] std::string key_of(Row const& row) const;
  void add(Row const& row, std::vector<Operations>& transactions);
  [[nodiscard]] Status commit(Operations operations);
  [[nodiscard]] Status write_all(std::vector<Operations> transactions);
  [[nodiscard]] Status finish_what_was_begun();
  void compact();
  void look_at_size();
  [[nodiscard]] Result<std::vector<Row>> to_rows(std::vector<EtcdClient::Pair> const& pairs);
  [[nodiscard]] Error failed(Error const& error) const;

  boost::asio::io_context io_;  // run by the calling thread
  EtcdClient etcd_;
  Leadership const leadership_;
  std::function<void()> const deposed_;
  std::string const prefix_;
  std::string const place_;
  std::optional<std::vector<Row>> preloaded_;
  std::map<std::string, std::size_t> in_pieces_;  // keys of rows that had more than one piece, with the most pieces
  bool is_redo_left_ = false;                     // there may be a redo log that is whole
  std::int64_t revision_ = 0;                     // of the last write
  std::int64_t order_revision_ = 0;               // mod_revision of the key `order`, as last seen; 0: no such key
  std::int64_t compacted_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;  // read by another thread than the one that writes
};

}  // namespace chorus::coordinator
