// A model of etcd: the part of its v3 JSON gateway that Chorus uses, on a host of the simulation. The model checks two
// promises: each write of rows compares the writer's term, and terms never go back.
//
// Each member answers by itself and always reaches the others: a quorum is not modelled.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/task_group.hpp"
#include "http/server/server.hpp"
#include "tests/simulation/etcd_keys.hpp"

namespace chorus::simulation {

// The state that the members share.
struct EtcdCluster {
  explicit EtcdCluster(std::string key_prefix) : prefix(std::move(key_prefix)) {}

  std::string const prefix;  // of the keys of the cluster under test
  EtcdKeys keys;
  std::int64_t term = 0;  // create_revision of the leader's key, at the last write of rows
  std::size_t terms = 0;
  std::uint64_t fenced = 0;          // refused writes of former leaders
  std::string broken;                // "", or the promise that was broken
  std::function<void()> next_write;  // called once, after a write of rows and before its answer

  // URL of the leader; "" if there is none.
  [[nodiscard]] std::string leader() const;
};

// One member of the modelled etcd, on its host's executor.
class ModelEtcd {
 public:
  ModelEtcd(boost::asio::any_io_executor executor, EtcdCluster& cluster);
  ModelEtcd(ModelEtcd const&) = delete;
  ModelEtcd& operator=(ModelEtcd const&) = delete;

  [[nodiscard]] Result<std::uint16_t> start(std::uint16_t port);
  boost::asio::awaitable<void> stop();

 private:
  using Object = boost::json::object;
  struct Refusal {
    int code;  // gRPC code
    std::string text;
  };
  struct Reply {
    Object body;
    std::optional<Refusal> refusal;
  };
  using Method = Reply (ModelEtcd::*)(Object const& request);

  void add(char const* path, Method method);
  boost::asio::awaitable<http::Response> answer(Method method, http::Body* body);
  boost::asio::awaitable<void> expire_leases();
  [[nodiscard]] Object header() const;
  Reply range(Object const& request);
  Reply transact(Object const& request);
  Reply compact(Object const& request);
  Reply grant(Object const& request);
  Reply keep_alive(Object const& request);
  Reply revoke(Object const& request);
  Reply status(Object const& request);
  void check_promises(std::vector<EtcdKeys::Compare> const& compares,
                      std::vector<EtcdKeys::Operation> const& operations, bool succeeded);

  boost::asio::any_io_executor executor_;
  EtcdCluster& cluster_;
  http::Router router_;
  http::Server server_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::simulation
