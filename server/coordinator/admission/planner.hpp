// Runs expensive computations on threads of its own, so that the thread that answers heartbeats never computes for
// long. Dry runs and simulations have a thread of their own: a collective with a deadline does not wait behind them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <compare>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/runtime/side_thread.hpp"
#include "collectives/model/choice/learned_costs.hpp"
#include "collectives/model/choice/select.hpp"
#include "collectives/model/measured_levels.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/simulations.hpp"
#include "http/json/problem.hpp"
#include "server/coordinator/groups/rank_assignment.hpp"

namespace chorus::coordinator {

// One thread makes the calls. All awaited calls end before the planner is destroyed; its destructor joins the threads.
class Planner {
 public:
  // `instead`: see SideThread.
  explicit Planner(model::Constants constants, boost::asio::any_io_executor instead = {})
      : levels_(constants), thread_(instead), preview_thread_(instead) {}
  Planner(Planner const&) = delete;
  Planner& operator=(Planner const&) = delete;

  // The last 32 answers without measured pairs and GPUs are kept: programs make groups of the same members again and
  // again.
  boost::asio::awaitable<Result<RankAssignment>> arrange(Standing as_listed, Seniority seniority);

  // The roles of one rank, see roles_of().
  boost::asio::awaitable<Result<std::vector<api::RoleInAlgorithm>>> roles(Standing in_rank_order,
                                                                          std::vector<api::Selection> table,
                                                                          plan::Rank rank);

  // A rank assignment is identified by the name and epoch of its group. The last 256 answers are kept, so a training
  // loop that repeats itself does not wait for the thread.
  struct Question {
    std::string group;
    std::uint32_t epoch = 0;
    model::Wish wish;
    std::uint64_t elements = 0;
    std::size_t element_bytes = 0;
    bool on_gpus = false;  // every rank's tensor is on a GPU; otherwise GPU links are not used
  };
  boost::asio::awaitable<Result<model::Choice>> select(Question question, Standing in_rank_order);

  // A run that select() chose for this question has succeeded; `seconds` is the time of the slowest rank. Used for
  // later answers.
  void learn(Question const& question, plan::Spec const& spec, double seconds);
  // The same of a run that has failed, and not because of its caller.
  void learn_failure(Question const& question, plan::Spec const& spec);

  // A link of this level, not host, was measured: its one-way latency beyond that within a host, and its bandwidth.
  // Updates the model's constants for the level, see MeasuredLevels; earlier answers are forgotten.
  void measured(Level level, double latency_s, double bytes_per_s);

  // POST /v1/plans for the members of a group, if there is one; see plan_preview.hpp. Problem `unavailable` when too
  // many requests wait.
  boost::asio::awaitable<http::Checked<api::PlanAnswer>> preview(api::PlanRequest request,
                                                                 std::optional<Standing> of_group);

  // POST /v1/simulations, see server/planning/simulations.hpp. Uses the same queue as preview().
  boost::asio::awaitable<http::Checked<api::SimulationAnswer>> simulate(api::SimulationRequest request);

 private:
  struct Key {
    std::string group;
    std::uint32_t epoch;
    std::string algorithm;
    Op op;
    bool in_place, uneven, reproducible, without_wider_sums;
    std::optional<std::vector<std::uint32_t>> shape;
    std::int64_t root, arity;  // -1: not fixed
    std::string compression;   // empty: none
    std::uint64_t elements;
    std::size_t element_bytes;
    bool on_gpus;
    auto operator<=>(Key const&) const = default;
  };
  struct Kept {
    model::Choice choice;
    std::list<Key>::iterator position;
  };
  struct Arranged {
    std::vector<Locality> localities;
    Seniority seniority;
    RankAssignment assignment;
  };
  static constexpr std::size_t answers_kept = 256, arrangements_kept = 32;
  static constexpr std::size_t previews_waiting_max = 16;
  template <class Answer>
  boost::asio::awaitable<http::Checked<Answer>> in_line(boost::asio::awaitable<http::Checked<Answer>> work);
  static Key key_of(Question const& question);
  void keep(Key const& key, model::Choice const& choice);

  model::MeasuredLevels levels_;
  std::uint64_t levels_version_ = 0;  // one more with each measurement
  model::LearnedCosts learned_;
  std::map<Key, Kept> kept_;
  std::list<Key> recent_;         // most recent first
  std::list<Arranged> arranged_;  // most recent first
  std::size_t previews_waiting_ = 0;
  http::SideThread thread_, preview_thread_;
};

}  // namespace chorus::coordinator
