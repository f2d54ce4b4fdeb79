// The groups that this worker is a member of, and the calls of its own clients on them: no coordinator takes part.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http/api/membership.hpp"
#include "worker/service/group.hpp"
#include "worker/service/runner.hpp"

namespace chorus::service {

// On the control thread. Runner, data plane and identity outlive it and the calls.
class GroupBook {
 public:
  // A call has failed, and its epoch is broken.
  using OnTrouble = std::function<void(api::Trouble)>;

  GroupBook(boost::asio::any_io_executor executor, Runner& runner, engine::DataPlane& plane, Identity const& identity,
            OnTrouble on_trouble)
      : executor_(std::move(executor)),
        runner_(runner),
        plane_(plane),
        identity_(identity),
        on_trouble_(std::move(on_trouble)) {}

  // From the coordinator. A new epoch ends the calls of the old one and closes links of members that were replaced; one
  // without this worker ends its membership. Problems: epoch_fenced for another addressee, an epoch below the highest
  // seen (errors[] names it at /group/epoch), or other members under the same epoch; invalid_field.
  [[nodiscard]] std::optional<http::Problem> assign(api::GroupAssignment const& message);

  [[nodiscard]] std::vector<api::Group> list(std::string const& after, std::size_t limit) const;
  [[nodiscard]] http::Checked<api::Group> get(std::string const& name) const;  // unknown_group

  // Called on the control thread whenever what this worker knows of a group may have changed: for a program that has
  // the worker in its own process. One listener; before the first assignment.
  using Listener = std::function<void(std::string const& name)>;
  void listen(Listener listener) { listener_ = std::move(listener); }
  // Null when this worker is no member.
  [[nodiscard]] std::shared_ptr<GroupEpoch const> epoch_of(std::string const& name) const;

  // epoch_fenced for an epoch below the highest seen of this name. Groups that are not known have no opinion.
  [[nodiscard]] std::optional<http::Problem> check_epoch(std::string const& name, std::uint32_t epoch) const;

  // Waits for its turn, runs, and commits on this rank. The deadline counts from now. `trace_id`: that it belongs to.
  boost::asio::awaitable<http::Checked<api::LocalReport>> call(std::string group, std::string op, api::LocalCall call,
                                                               std::string trace_id);

  // What the coordinator is told: of each group whose members have called, in its present epoch.
  [[nodiscard]] std::vector<api::GroupCalls> calls() const;

  // No new calls; drained() returns when the last one has ended, or at the deadline.
  void drain() { draining_ = true; }
  boost::asio::awaitable<void> drained(std::chrono::steady_clock::time_point deadline);
  // Ends the calls with `why`.
  void stop(std::string const& why);

 private:
  using EpochPtr = std::shared_ptr<GroupEpoch>;
  struct Entry {
    std::uint32_t highest_epoch = 0;
    EpochPtr epoch;  // null when this worker is no member
  };

  boost::asio::awaitable<http::Checked<api::LocalReport>> run(EpochPtr epoch, Op op, RunOrder order,
                                                              api::LocalCall call, std::string trace_id);
  // One run, or of a list one for each portion, to their end, which was a good one: seconds, bytes, and the results.
  // Epoch and call outlive it.
  boost::asio::awaitable<http::Checked<RunEnd>> run_portions(GroupEpoch& epoch, RunOrder order,
                                                             api::LocalCall const& call);
  boost::asio::awaitable<http::Checked<RunEnd>> run_one(GroupEpoch& epoch, RunOrder order);
  [[nodiscard]] http::Checked<RunOrder> checked_order(GroupEpoch const& epoch, std::uint64_t sequence, Op op,
                                                      std::chrono::steady_clock::time_point deadline,
                                                      api::LocalCall const& call);
  [[nodiscard]] std::optional<http::Problem> accept(api::GroupAssignment const& message);
  [[nodiscard]] http::Checked<EpochPtr> find(std::string const& name) const;
  void go_on(GroupEpoch& epoch, api::Group const& next);
  void end(GroupEpoch& epoch, Error why);

  boost::asio::any_io_executor executor_;
  Runner& runner_;
  engine::DataPlane& plane_;
  Identity const& identity_;
  OnTrouble const on_trouble_;
  std::map<std::string, Entry> entries_;
  Listener listener_;
  bool draining_ = false;
  std::size_t calls_ = 0;
  http::Condition call_ended_{executor_};
};

}  // namespace chorus::service
