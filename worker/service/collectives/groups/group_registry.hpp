// The groups of this worker, and the members' calls of its clients, in which no coordinator takes part.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "http/api/cluster/membership.hpp"
#include "http/routing/kept_answers.hpp"
#include "worker/service/collectives/groups/group.hpp"
#include "worker/service/collectives/groups/unnamed_calls.hpp"
#include "worker/service/collectives/runs/runner.hpp"

namespace chorus::service {

// Used on the control thread only. Runner, data plane and identity outlive the registry and its calls.
class GroupRegistry {
 public:
  // A call has failed and its epoch is broken.
  using OnTrouble = std::function<void(api::Trouble)>;

  GroupRegistry(boost::asio::any_io_executor executor, Runner& runner, engine::DataPlane& plane,
                Identity const& identity, OnTrouble on_trouble)
      : executor_(std::move(executor)),
        runner_(runner),
        plane_(plane),
        identity_(identity),
        on_trouble_(std::move(on_trouble)) {}

  // Takes an assignment from the coordinator. A new epoch ends the calls of the old one and closes links of replaced
  // members; an epoch without this worker ends its membership, one without members is a deleted group. Problems:
  // epoch_fenced for another addressee, for an epoch below the highest seen (errors[] names it at /group/epoch), and
  // for other members under the same epoch; invalid_field.
  [[nodiscard]] std::optional<http::Problem> assign(api::GroupAssignment const& message);

  [[nodiscard]] std::vector<api::Group> list(std::string const& after, std::size_t limit) const;
  [[nodiscard]] http::Checked<api::Group> get(std::string const& name) const;  // unknown_group

  // Sets the one listener, before the first assignment: it is called on the control thread whenever a group may have
  // changed, for programs that embed the worker.
  using Listener = std::function<void(std::string const& name)>;
  void listen(Listener listener) { listener_ = std::move(listener); }
  // Null if this worker is no member.
  [[nodiscard]] std::shared_ptr<GroupEpoch const> epoch_of(std::string const& name) const;

  // Problem epoch_fenced for an epoch below the highest seen of this group; empty for unknown groups.
  [[nodiscard]] std::optional<http::Problem> check_epoch(std::string const& name, std::uint32_t epoch) const;

  using Outcome = http::Checked<api::LocalReport>;
  // The caller of a call, beyond what the call says.
  struct Origin {
    std::optional<std::string> key;  // Idempotency-Key
    http::Body* body;                // of the request; null: the caller always gets the answer. Outlives the call
    std::string trace_id;            // of the trace that the call belongs to
  };

  // Waits for the call's turn, runs it, and commits on this rank. The deadline counts from now. A repetition of a call,
  // recognised by its key or else its sequence, gets the first outcome while it is among the last calls_kept of the
  // group. Problems: also idempotency_reused; out_of_order for a sequence that is not the next; epoch_fenced for
  // another epoch than the current one; group_broken for an unnamed call after one whose client has gone.
  boost::asio::awaitable<Outcome> call(std::string group, std::string op, api::LocalCall call, Origin origin);
  static constexpr std::size_t calls_kept = 128;

  // Reports for the coordinator: one per group whose members have called in its current epoch.
  [[nodiscard]] std::vector<api::GroupCalls> calls() const;

  // Refuses new calls; drained() returns when the last call has ended, or at the deadline.
  void drain() { draining_ = true; }
  boost::asio::awaitable<void> drained(std::chrono::steady_clock::time_point deadline);
  // Ends all calls with `why`.
  void stop(std::string const& why);

 private:
  using EpochPtr = std::shared_ptr<GroupEpoch>;
  using Answers = http::KeptAnswers<std::string, Outcome>;  // by name of the call
  // Kept while this worker is a member, and then among the last retired_kept: old assignments that come late are
  // refused. Calls that are under way keep it as well.
  struct Entry {
    explicit Entry(boost::asio::any_io_executor executor) : answers(std::move(executor), {.answers = calls_kept}) {}
    std::uint32_t highest_epoch = 0;
    EpochPtr epoch;  // null when this worker is no member
    Answers answers;
    UnnamedCalls unnamed;
  };
  static constexpr std::size_t retired_kept = 1024;

  // Why a call that is not a repetition is refused before it takes a number, whatever it asks for.
  [[nodiscard]] std::optional<http::Problem> refusal(Entry& entry, GroupEpoch& epoch, api::LocalCall const& call,
                                                     bool is_unnamed);
  // Breaks the epoch, here and at the other members, because the call of this number will not run.
  [[nodiscard]] http::Problem break_for_all(GroupEpoch& epoch, std::uint64_t sequence, std::string why);
  // Breaks the epoch because a call that had its number has failed here, and tells the other members and the
  // coordinator. Returns the problem with the lost ranks.
  [[nodiscard]] http::Problem fail(GroupEpoch& epoch, http::Problem problem);
  boost::asio::awaitable<Outcome> again(Answers::RecordPtr record);
  // `unnamed`: null for a call with a name.
  boost::asio::awaitable<Outcome> run(EpochPtr epoch, Op op, RunOrder order, api::LocalCall call, std::string trace_id,
                                      UnnamedCalls* unnamed);
  // Runs a call to its end: one run, or one per portion of a list. On success returns seconds, bytes and results. Epoch
  // and call outlive the coroutine.
  boost::asio::awaitable<http::Checked<RunEnd>> run_portions(GroupEpoch& epoch, RunOrder order,
                                                             api::LocalCall const& call);
  boost::asio::awaitable<http::Checked<RunEnd>> run_one(GroupEpoch& epoch, RunOrder order);
  [[nodiscard]] http::Checked<RunOrder> checked_order(GroupEpoch const& epoch, std::uint64_t sequence, Op op,
                                                      std::chrono::steady_clock::time_point deadline,
                                                      api::LocalCall const& call);
  [[nodiscard]] std::optional<http::Problem> accept(api::GroupAssignment const& message);
  [[nodiscard]] http::Checked<EpochPtr> find(std::string const& name) const;
  void go_on(GroupEpoch& epoch, api::Group const& next);
  // This worker is no member of the group any more.
  void retire(std::string const& name);
  void end(GroupEpoch& epoch, Error why);

  boost::asio::any_io_executor executor_;
  Runner& runner_;
  engine::DataPlane& plane_;
  Identity const& identity_;
  OnTrouble const on_trouble_;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  std::deque<std::string> retired_;  // names of entries without an epoch, oldest first, each once
  Listener listener_;
  bool draining_ = false;
  std::size_t calls_ = 0;
  http::Condition call_ended_{executor_};
};

}  // namespace chorus::service
