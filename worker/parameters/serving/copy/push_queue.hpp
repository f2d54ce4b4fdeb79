// Pushes that wait for their turn, and their answers.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "base/runtime/condition.hpp"
#include "worker/parameters/serving/copy/shard_tools.hpp"
#include "worker/parameters/serving/copy/tenure.hpp"

namespace chorus::parameters {

// A push whose requester waits for the answer.
struct PushJob {
  // Of a push from the owner.
  struct FromOwner {
    std::uint64_t position = 0;
    std::optional<std::uint64_t> history;  // the owner's, before the push
    std::uint32_t epoch = 0;               // in which the push was sent
  };
  Push push;
  std::optional<FromOwner> from_owner;
  http::TimePoint begun = std::chrono::steady_clock::now();
  bool is_withdrawn = false;
  bool has_waited = false;
  std::optional<http::Checked<api::PushAnswer>> answer;
};

// Used on the control thread. The objects that it refers to outlive it.
class PushQueue {
 public:
  using JobPtr = std::shared_ptr<PushJob>;

  // changed: notified at every new push and every answer.
  PushQueue(ShardTools const& tools, Tenure const& tenure, http::Condition& changed)
      : tools_(tools), tenure_(tenure), changed_(changed) {}

  JobPtr add(Push push, std::optional<PushJob::FromOwner> from_owner = std::nullopt);
  // Answers a push. A suspended owner acknowledges none, and a worker that is no longer the owner none of a client.
  void answer(PushJob& job, http::Checked<api::PushAnswer> answer);
  // Waits for the answer. Withdraws the push at the deadline, or when the shard is closed.
  boost::asio::awaitable<void> until_answered(JobPtr job, http::TimePoint deadline);

  enum class Turn { now, later, never };  // never: the push was answered
  [[nodiscard]] bool is_empty() const { return jobs_.empty(); }
  // Returns the first push whose turn is now, and removes it; null: there is none.
  [[nodiscard]] JobPtr next(std::function<Turn(JobPtr const&)> const& turn);
  // Answers all pushes.
  void close(http::Problem const& why);

 private:
  ShardTools const& tools_;
  Tenure const& tenure_;
  http::Condition& changed_;
  std::list<JobPtr> jobs_;
};

}  // namespace chorus::parameters
