// A lock on a cluster in etcd that has no leader: while it is held, no coordinator becomes the leader.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <memory>
#include <optional>

#include "server/coordinator/high_availability/election.hpp"
#include "server/coordinator/high_availability/etcd_store.hpp"

namespace chorus::coordinator {

// Leads the cluster without serving. Calls block. Used by one thread.
class HeldCluster {
 public:
  // `new_cluster_id`: that of Election, for a cluster that etcd does not know. Without one, that is unknown_cluster.
  // Errors: EtcdErrc; not_leader names the coordinator that leads.
  [[nodiscard]] static Result<std::unique_ptr<HeldCluster>> hold(EtcdOptions options,
                                                                 std::optional<std::uint64_t> new_cluster_id);
  ~HeldCluster();  // a coordinator may lead from now on
  HeldCluster(HeldCluster const&) = delete;
  HeldCluster& operator=(HeldCluster const&) = delete;

  [[nodiscard]] EtcdStore& store() { return *store_; }

 private:
  HeldCluster(EtcdOptions options, std::uint64_t new_cluster_id);
  [[nodiscard]] Status check_known();
  [[nodiscard]] Status lead();
  [[nodiscard]] std::string place() const;

  boost::asio::io_context io_;  // run by the calling thread
  EtcdClient etcd_;
  Election election_;
  std::optional<EtcdStore> store_;
};

}  // namespace chorus::coordinator
