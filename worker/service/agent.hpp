// The worker's side of membership: joins the coordinator, keeps the lease alive, leaves.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/api/membership.hpp"
#include "http/client.hpp"
#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "metrics/worker_metrics.hpp"
#include "worker/service/backoff.hpp"

namespace spdlog {
class logger;
}

namespace chorus::service {

struct AgentOptions {
  std::string coordinator;  // "http://host:7070"
  api::JoinRequest self;
  std::chrono::milliseconds backoff_min{100};   // between attempts to join, or to renew a lease that has ended; doubled
  std::chrono::milliseconds backoff_max{5000};  // up to this
  std::chrono::milliseconds retry_after_max{60000};  // as long as a coordinator that is overloaded is believed
  std::chrono::milliseconds join_timeout{10000};
};

// On the control thread. Client and metrics outlive stop(). A coordinator that cannot be reached is tried for ever; one
// that has given this worker's name to a newer process is not: `fenced` is called once, with the reason.
class Agent {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Fenced = std::function<void(std::string why)>;
  // What the coordinator is told of the members' own calls, with every renewal.
  using Calls = std::function<std::vector<api::GroupCalls>()>;

  Agent(boost::asio::any_io_executor executor, http::Client& client, metrics::WorkerMetrics& metrics,
        std::shared_ptr<spdlog::logger> log, AgentOptions options, Fenced fenced, Calls calls);

  void start();

  // Why this worker does not belong to the coordinator at the moment, or nothing if its lease lives.
  [[nodiscard]] std::optional<std::string> unready() const;

  // A call between members has failed: the coordinator is told with the next renewal, which is made at once.
  void report(api::Trouble trouble);

  // Asks the coordinator to have others take the shards that are here; before stop(). Returns when that is done, given
  // up, or at the deadline.
  boost::asio::awaitable<void> hand_over(TimePoint deadline);

  // Tells the coordinator that the worker goes. Call stop() first, or the agent joins again.
  boost::asio::awaitable<void> leave(TimePoint deadline);
  boost::asio::awaitable<void> stop();

 private:
  enum class Renewal { renewed, failed, join_again, fenced };

  boost::asio::awaitable<void> live();
  // Nothing: it has joined. Otherwise the coordinator wants to be left alone for so long.
  boost::asio::awaitable<std::optional<std::chrono::milliseconds>> join();
  boost::asio::awaitable<void> hold_lease();
  boost::asio::awaitable<Renewal> renew();
  // `what` is a literal: of this worker's resource at the coordinator.
  boost::asio::awaitable<Result<http::Answer>> give_back(std::string_view what, TimePoint deadline);
  boost::asio::awaitable<void> pause(std::chrono::milliseconds duration);
  void fence(std::string why);
  void complain(std::string const& why);  // once per reason, not once per attempt
  [[nodiscard]] std::chrono::milliseconds until_next_renewal(Renewal last);
  [[nodiscard]] std::string own_url() const;

  boost::asio::any_io_executor executor_;
  http::Client& client_;
  metrics::WorkerMetrics& metrics_;
  std::shared_ptr<spdlog::logger> log_;
  AgentOptions const options_;
  Fenced const fenced_callback_;
  Calls const calls_;
  Backoff backoff_;  // seeded by the incarnation: workers that start together must not knock together
  std::chrono::milliseconds lease_{0};
  TimePoint lease_ends_{};
  bool is_fenced_ = false;
  std::string complaint_ = "not joined yet";
  std::vector<api::Trouble> troubles_;
  http::Condition troubled_{executor_};
  http::TaskGroup tasks_;
};

}  // namespace chorus::service
