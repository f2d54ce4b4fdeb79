// The election of the leader among several coordinators. The leader's key in etcd is bound to a lease that the leader
// renews. When the lease ends, etcd deletes the key, and the first standby that creates it leads.
//
// The key's create_revision numbers the terms. A write that compares it (EtcdStore) fails once another coordinator
// leads, even if the former leader was stopped in between.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/coordinator/high_availability/etcd_client.hpp"

namespace chorus::coordinator {

// The term of one leader. A value.
struct Leadership {
  std::string key;
  std::int64_t create_revision = 0;
  std::int64_t lease = 0;
};

struct ElectionPatience {
  std::chrono::seconds lease{2};           // etcd grants no shorter lease
  std::chrono::milliseconds look{150};     // interval at which a standby reads the leader's key
  std::chrono::milliseconds margin{200};   // time before the end of its lease at which a leader stops
  std::chrono::milliseconds answer{1000};  // limit of an answer of etcd
};

// Stored in place of a leader's URL by a command that holds the cluster. No name under .invalid resolves.
constexpr std::string_view url_of_holder = "http://chorus-journal.invalid";

// Owned by Leading or HeldCluster; called on the executor's one thread. The client outlives the election.
class Election {
 public:
  using TimePoint = http::TimePoint;

  // `new_cluster_id`: unpredictable; becomes the id of the cluster if etcd does not know the cluster.
  Election(EtcdClient& etcd, std::uint64_t new_cluster_id, ElectionPatience patience = {});

  // Checks that etcd answers and that the cluster's format is known; creates the cluster's first key. Errors: EtcdErrc.
  boost::asio::awaitable<Status> check_format(TimePoint deadline);

  // Tries once; empty if another coordinator leads. leader() then returns its URL. Errors: EtcdErrc.
  boost::asio::awaitable<Result<std::optional<Leadership>>> try_to_lead(std::string url);
  // Returns when this coordinator leads; tries for ever. `url` is stored as the leader's. Cancellable. Errors:
  // EtcdErrc::refused, newer, emptied, made_anew.
  boost::asio::awaitable<Result<Leadership>> campaign(std::string url);
  // URL of the leader when its key was last read; empty if no coordinator led.
  [[nodiscard]] std::optional<std::string> const& leader() const { return leader_; }
  // The same without the own URL, which this process or one before it has stored, and without that of a command that
  // holds the cluster: the coordinator to which clients can be sent.
  [[nodiscard]] std::optional<std::string> other_leader() const;
  // Term of that leader.
  [[nodiscard]] std::optional<std::int64_t> term() const { return leader_ ? std::optional(term_) : std::nullopt; }
  // The last failure of etcd; "" after an answer.
  [[nodiscard]] std::string const& trouble() const { return trouble_; }

  // Renews the lease after campaign(). Returns the reason when this process may lead no longer; by its monotonic clock
  // its lease has not ended yet.
  boost::asio::awaitable<std::string> keep();
  // Deletes the leader's key, so that a standby leads at once.
  boost::asio::awaitable<void> resign(TimePoint deadline);
  // True if the keys that this process has seen are gone.
  boost::asio::awaitable<bool> was_emptied(TimePoint deadline);
  // Returns when etcd has the cluster again, restored or made anew. Cancellable.
  boost::asio::awaitable<void> found_again();
  // True if the lease has time left, counted from before its last renewal was sent.
  [[nodiscard]] bool leads() const;

 private:
  [[nodiscard]] std::string key() const { return etcd_.options().prefix() + "leader"; }
  [[nodiscard]] std::string format_key() const { return etcd_.options().prefix() + "format"; }
  [[nodiscard]] Error is_emptied() const;

  EtcdClient& etcd_;
  std::uint64_t const new_cluster_id_;
  ElectionPatience const patience_;
  std::string own_url_;  // as this process campaigns
  std::optional<std::string> leader_;
  std::int64_t term_ = 0;  // of that leader
  TimePoint leader_seen_{};
  std::string trouble_;
  std::string cluster_id_;  // value of the format key, as first seen
  std::int64_t lease_ = 0;
  TimePoint lease_ends_{};
};

}  // namespace chorus::coordinator
