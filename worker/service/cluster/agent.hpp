// The worker's side of membership: joins the coordinator, renews the lease, leaves.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/runtime/condition.hpp"
#include "base/runtime/task_group.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/client/client.hpp"
#include "metrics/worker_metrics.hpp"
#include "worker/parameters/serving/copy/owner_lease.hpp"
#include "worker/service/cluster/backoff.hpp"

namespace spdlog {
class logger;
}

namespace chorus::service {

struct AgentOptions {
  std::string coordinator;  // "http://host:7070"
  api::JoinRequest self;
  std::chrono::milliseconds backoff_min{100};   // first pause between attempts to join, or to renew a lease that has
                                                // ended
  std::chrono::milliseconds backoff_max{5000};  // pauses double up to this
  std::chrono::milliseconds retry_after_max{60000};  // longest pause that an overloaded coordinator may ask for
  std::chrono::milliseconds join_timeout{10000};
};

// Used on the control thread only. Client and metrics outlive stop(). The agent tries an unreachable coordinator for
// ever. It gives up when the coordinator has given this worker's name to a newer process: then it calls `fenced` once,
// with the reason.
class Agent {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Fenced = std::function<void(std::string why)>;
  // Supplies the members' own calls, which every renewal reports.
  using Calls = std::function<std::vector<api::GroupCalls>()>;

  Agent(boost::asio::any_io_executor executor, http::Client& client, metrics::WorkerMetrics& metrics,
        std::shared_ptr<spdlog::logger> log, AgentOptions options, Fenced fenced, Calls calls);

  // Binds the shards of this worker to the lease. Call before start(); `owned` outlives the agent.
  void bind(parameters::OwnerLease& owned) { owned_ = &owned; }

  void start();

  // Why this worker is no member at the moment; empty while its lease lives.
  [[nodiscard]] std::optional<std::string> unready() const;

  // Reports a failed call between members to the coordinator: the next renewal is sent at once.
  void report(api::Trouble trouble);

  // Asks the coordinator to move the shards of this worker to others; call before stop(). While no coordinator answers
  // or leads it asks again. Returns when that is done or refused, or at the deadline.
  boost::asio::awaitable<void> hand_over(TimePoint deadline);

  // Tells the coordinator that the worker leaves. Call stop() first, or the agent joins again.
  boost::asio::awaitable<void> leave(TimePoint deadline);
  // Waits until the deadline for the answer to a join, so that leave() follows it.
  boost::asio::awaitable<void> stop(TimePoint deadline);

 private:
  enum class Renewal { renewed, failed, refused, join_again, fenced };  // failed: no answer

  boost::asio::awaitable<void> live();
  // Empty: joined. Otherwise the pause that the coordinator asks for.
  boost::asio::awaitable<std::optional<std::chrono::milliseconds>> join();
  boost::asio::awaitable<void> hold_lease();
  boost::asio::awaitable<Renewal> renew();
  // `what`: a literal, path of this worker's resource at the coordinator.
  boost::asio::awaitable<Result<http::Answer>> give_back(std::string_view what, TimePoint deadline);
  boost::asio::awaitable<Result<http::Answer>> ask_to_hand_over(TimePoint deadline);
  void tell_of_hand_over(http::Answer const& answer);
  void fence(std::string why);
  void end_lease();
  void complain(std::string const& why);  // logs each reason once, not once per attempt
  [[nodiscard]] std::chrono::milliseconds until_next_renewal(Renewal last);
  [[nodiscard]] std::string own_url() const;

  boost::asio::any_io_executor executor_;
  http::Client& client_;
  metrics::WorkerMetrics& metrics_;
  std::shared_ptr<spdlog::logger> log_;
  AgentOptions const options_;
  Fenced const fenced_callback_;
  Calls const calls_;
  Backoff backoff_;  // seeded by the incarnation, so that workers that start together do not retry together
  std::chrono::milliseconds lease_{0};
  TimePoint lease_ends_{};
  parameters::OwnerLease* owned_ = nullptr;
  bool is_fenced_ = false;
  bool stops_ = false;
  bool asks_to_join_ = false;
  std::string complaint_ = "not joined yet";
  std::vector<api::Trouble> troubles_;
  http::Condition troubled_{executor_};
  http::Condition asked_to_join_{executor_};
  http::TaskGroup tasks_;
};

}  // namespace chorus::service
