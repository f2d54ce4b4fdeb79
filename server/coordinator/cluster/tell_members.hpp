// Tells the members of a group of its new epoch, and collects their refusals.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/runtime/condition.hpp"
#include "http/json/problem.hpp"
#include "server/coordinator/membership/worker_client.hpp"

namespace chorus::coordinator {

// Used on one thread. The WorkerClient outlives the object.
class TellMembers {
 public:
  // `token`: see EpochMessage.
  TellMembers(WorkerClient& workers, boost::asio::any_io_executor executor, api::Group group,
              std::vector<api::Member> members, std::string token, http::TimePoint deadline);
  TellMembers(TellMembers const&) = delete;
  TellMembers& operator=(TellMembers const&) = delete;

  // The caller starts so many tasks some(), which share the members, and waits in all() until all were asked. A task
  // may end before the next one is started: an answer over TLS that is there already is read without waiting.
  // `on_silent` is called for each member that does not answer.
  [[nodiscard]] std::size_t tasks() const { return std::min(members_.size(), told_at_once); }
  static boost::asio::awaitable<void> some(std::shared_ptr<TellMembers> tell,
                                           std::function<void(api::Member const&)> on_silent);
  boost::asio::awaitable<void> all();

  // Afterwards. The highest epoch that a refusing member has seen; 0 for none.
  [[nodiscard]] std::uint32_t epoch_seen() const { return epoch_seen_; }
  [[nodiscard]] std::vector<http::Problem> const& refusals() const { return refusals_; }
  // The refusals as one problem; none if every member has taken the epoch. epoch_fenced only if nothing else is wrong,
  // because a higher epoch does not help a member that cannot be reached.
  [[nodiscard]] std::optional<http::Problem> refusal() const;

 private:
  // Some MB of a socket's buffers for each.
  static constexpr std::size_t told_at_once = 256;

  [[nodiscard]] std::optional<http::Problem> refusal_of(api::Member const& member,
                                                        WorkerClient::Said<bool> const& said);

  WorkerClient& workers_;
  std::vector<api::Member> const members_;
  std::shared_ptr<EpochMessage const> const message_;
  http::TimePoint const deadline_;
  std::size_t next_ = 0;  // of the members
  std::size_t running_;   // tasks
  http::Condition changed_;
  std::vector<http::Problem> refusals_;
  std::uint32_t epoch_seen_ = 0;
};

}  // namespace chorus::coordinator
