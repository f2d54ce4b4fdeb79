// A collective whose coordinator died in the middle: asks every worker what became of the run there, and brings it to
// one end on all of them.
//
// The rule: what any rank has committed is committed everywhere; so is what was decided, unless a rank has let go of
// its result and none has committed; anything else is aborted everywhere. Nobody commits what was not decided, so a
// rank that cannot be asked and may have committed is one that the decision speaks for.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/condition.hpp"
#include "http/task_group.hpp"
#include "server/coordinator/execution.hpp"

namespace chorus::coordinator {

class Reconciliation {
 public:
  // The tools outlive it. Takes its place in the lines for its tensors at once: nobody overtakes it. `record` has not
  // ended; `patience` is for workers that neither answer nor refuse.
  Reconciliation(ExecutionTools const& tools, std::chrono::milliseconds patience, std::shared_ptr<Record> record,
                 api::Group group, bool decided);

  // Once, to the end; its owner joins it. The record has then ended, unless give_up() came first.
  boost::asio::awaitable<void> run();

  // The process stops: what has not been asked by now is left to the next life.
  void give_up();

  [[nodiscard]] http::Condition& changed() { return changed_; }
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Record const& record() const { return *record_; }
  [[nodiscard]] api::Group const& group() const { return group_; }
  [[nodiscard]] std::vector<std::uint32_t> const& broken_ranks() const { return broken_; }

 private:
  boost::asio::awaitable<void> ask(std::uint32_t rank);
  boost::asio::awaitable<void> commit(std::uint32_t rank);
  boost::asio::awaitable<void> abort(std::uint32_t rank);
  boost::asio::awaitable<void> all(boost::asio::awaitable<void> (Reconciliation::*step)(std::uint32_t));
  [[nodiscard]] bool is_to_be_committed() const;
  void succeed_or_fail();
  void fail_aborted();
  [[nodiscard]] http::Problem refused(std::uint32_t rank, http::ProblemCode code, std::string const& why) const;

  struct Rank {
    std::optional<api::RunStatus> status;  // as it said
    std::string unheard;                   // why it said nothing
    std::optional<std::uint64_t> version;  // committed
    std::optional<http::Problem> refusal;  // of the commit
  };

  ExecutionTools const& tools_;
  std::chrono::milliseconds const patience_;
  std::shared_ptr<Record> const record_;
  api::Group const group_;
  bool const decided_;
  LockTable::Ticket const ticket_;
  TimePoint deadline_;
  std::vector<Rank> ranks_;
  std::vector<std::uint32_t> broken_;
  bool given_up_ = false;
  bool done_ = false;
  http::Condition changed_;
  http::TaskGroup calls_;
};

}  // namespace chorus::coordinator
