// One of several coordinators: standby at first, then leader.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/runtime/condition.hpp"
#include "base/runtime/side_thread.hpp"
#include "base/runtime/task_group.hpp"
#include "server/coordinator/coordinator.hpp"
#include "server/coordinator/high_availability/election.hpp"
#include "server/coordinator/high_availability/etcd_store.hpp"
#include "server/coordinator/high_availability/standby.hpp"

namespace chorus::coordinator {

struct LeadingOptions {
  std::string host;
  std::uint16_t port = 0;
  std::string advertise;  // HOST:PORT to which standbys redirect; "": host and port
  std::string host_name;  // of this machine; takes the place of a host that stands for all addresses
  EtcdOptions etcd;
  ElectionPatience election;
};

// Owned by main(); called on the executor's one thread. The process ends without destroying it; tests destroy it after
// stop().
class Leading {
 public:
  Leading(boost::asio::any_io_executor executor, LeadingOptions options, CoordinatorOptions coordinator, Random random,
          std::shared_ptr<spdlog::logger> log);
  Leading(Leading const&) = delete;
  Leading& operator=(Leading const&) = delete;

  // Serves as a standby. Returns the port. Errors: AuthErrc, HttpErrc::bind_failed.
  [[nodiscard]] Result<std::uint16_t> start();
  [[nodiscard]] std::string_view scheme() const { return standby_.scheme(); }

  // Stands by until this coordinator is elected, then serves. Cancellable. Returns the exit status with which the
  // process has to end at once: it has lost the leadership, or etcd refuses it. The supervisor starts a new standby.
  boost::asio::awaitable<int> lead();
  // Waits until `until` for running collectives, if this coordinator leads, and lets a standby lead.
  boost::asio::awaitable<void> hand_over(TimePoint until);
  // Ends everything that this object has started. Call after lead() has ended.
  boost::asio::awaitable<void> stop(TimePoint until);

 private:
  boost::asio::awaitable<void> keep();
  boost::asio::awaitable<void> end(std::string why);
  boost::asio::awaitable<void> outlast_loss();
  boost::asio::awaitable<Result<Leadership>> campaign();
  [[nodiscard]] std::string url() const;
  boost::asio::awaitable<Result<std::unique_ptr<EtcdStore>>> load(Leadership leadership);
  [[nodiscard]] StandbyOptions standby_options() const;
  [[nodiscard]] CoordinatorOptions leader_options() const;
  [[nodiscard]] metrics::LeadershipScrape scrape() const;

  boost::asio::any_io_executor executor_;
  LeadingOptions const options_;
  CoordinatorOptions const coordinator_options_;
  Random const random_;
  std::shared_ptr<spdlog::logger> const log_;
  double const start_seconds_;  // of the process, since 1970
  std::shared_ptr<EtcdTraffic> const traffic_;
  EtcdClient etcd_;
  Election election_;
  Standby standby_;
  http::SideThread loading_;
  std::optional<Coordinator> coordinator_;
  bool is_stopped_ = false;                // coordinator_ is
  std::optional<Standby> after_the_loss_;  // answers in its place when etcd has lost the cluster
  std::uint16_t port_ = 0;
  std::optional<int> status_;
  bool is_ending_ = false;
  http::Condition ended_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::coordinator
