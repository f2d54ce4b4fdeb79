#include "server/coordinator/admission/planner.hpp"

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/runtime/until_done_there.hpp"
#include "server/coordinator/admission/plan_preview.hpp"
#include "server/planning/explain.hpp"
#include "server/planning/simulations.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;

// A running computation is awaited to its end, because a caller's cancellation does not cross threads.
// These functions run on the planner's thread and own their arguments.
asio::awaitable<Result<RankAssignment>> arrange_there(Standing as_listed, Seniority seniority,
                                                      model::Constants constants) {
  co_return coordinator::arrange(as_listed, seniority, constants);
}

asio::awaitable<Result<std::vector<api::RoleInAlgorithm>>> roles_there(Standing standing,
                                                                       std::vector<api::Selection> table,
                                                                       plan::Rank rank, model::Constants constants) {
  co_return coordinator::roles_of(standing, table, rank, constants);
}

asio::awaitable<Result<model::Choice>> select_there(Planner::Question question, Standing in_rank_order,
                                                    model::Constants constants) {
  auto const place = coordinator::place_of(std::move(in_rank_order), constants);
  co_return planning::select_in(place, question.wish, question.elements, question.element_bytes);
}

asio::awaitable<http::Checked<api::PlanAnswer>> preview_there(api::PlanRequest request,
                                                              std::optional<Standing> of_group,
                                                              model::Constants constants) {
  co_return preview_plan(request, std::move(of_group), constants);
}

asio::awaitable<http::Checked<api::SimulationAnswer>> simulate_there(api::SimulationRequest request,
                                                                     model::Constants constants) {
  co_return planning::simulate(request, constants);
}

model::LearnedCosts::Place learned_at(Planner::Question const& question) {
  return {question.group, question.epoch, question.wish.op, question.elements * question.element_bytes,
          question.wish.compression};
}

}  // namespace

asio::awaitable<Result<RankAssignment>> Planner::arrange(Standing as_listed, Seniority seniority) {
  bool const is_usual = as_listed.pairs == nullptr && as_listed.gpus == nullptr && as_listed.by_position.empty();
  auto const known = std::ranges::find_if(arranged_, [&](Arranged const& one) {
    return is_usual && one.seniority == seniority && one.localities == as_listed.localities;
  });
  if (known != arranged_.end()) {
    arranged_.splice(arranged_.begin(), arranged_, known);
    co_return known->assignment;
  }
  Arranged fresh{as_listed.localities, seniority, {}};
  auto const version = levels_version_;
  auto assignment = co_await asio::co_spawn(
      thread_.executor(), arrange_there(std::move(as_listed), std::move(seniority), levels_.constants()),
      http::until_done_there());
  if (assignment.has_error() || !is_usual || version != levels_version_) co_return assignment;
  fresh.assignment = assignment.value();
  arranged_.push_front(std::move(fresh));
  if (arranged_.size() > arrangements_kept) arranged_.pop_back();
  co_return assignment;
}

asio::awaitable<Result<std::vector<api::RoleInAlgorithm>>> Planner::roles(Standing in_rank_order,
                                                                          std::vector<api::Selection> table,
                                                                          plan::Rank rank) {
  co_return co_await asio::co_spawn(preview_thread_.executor(),
                                    roles_there(std::move(in_rank_order), std::move(table), rank, levels_.constants()),
                                    http::until_done_there());
}

asio::awaitable<Result<model::Choice>> Planner::select(Question question, Standing in_rank_order) {
  auto const place = learned_at(question);
  bool const is_auto = question.wish.algorithm == "auto";
  auto const key = key_of(question);
  if (auto const found = kept_.find(key); found != kept_.end()) {
    recent_.splice(recent_.begin(), recent_, found->second.position);
    co_return learned_.corrected(place, found->second.choice, is_auto);
  }
  if (!question.on_gpus) in_rank_order.gpus = nullptr;
  auto const version = levels_version_;
  auto choice = co_await asio::co_spawn(
      thread_.executor(), select_there(std::move(question), std::move(in_rank_order), levels_.constants()),
      http::until_done_there());
  if (choice.has_error()) co_return choice;
  if (version == levels_version_) keep(key, choice.value());
  co_return learned_.corrected(place, std::move(choice.value()), is_auto);
}

void Planner::measured(Level level, double latency_s, double bytes_per_s) {
  levels_.add(level, levels_.constants().link(Level::host).alpha_s + latency_s, bytes_per_s);
  ++levels_version_;
  kept_.clear();
  recent_.clear();
  arranged_.clear();
}

void Planner::learn(Question const& question, plan::Spec const& spec, double seconds) {
  auto const found = kept_.find(key_of(question));
  if (found == kept_.end()) return;
  auto const& considered = found->second.choice.considered;
  auto const predicted = std::ranges::find(considered, spec, [](model::Candidate const& c) { return c.spec; });
  if (predicted != considered.end()) learned_.finished(learned_at(question), spec, predicted->cost.seconds, seconds);
}

void Planner::learn_failure(Question const& question, plan::Spec const& spec) {
  learned_.failed(learned_at(question), spec);
}

template <class Answer>
asio::awaitable<http::Checked<Answer>> Planner::in_line(asio::awaitable<http::Checked<Answer>> work) {
  if (previews_waiting_ == previews_waiting_max) {
    http::Problem problem(http::ProblemCode::unavailable,
                          std::to_string(previews_waiting_max) + " dry runs and simulations wait already");
    problem.retry_after_s = 1;
    co_return problem;
  }
  ++previews_waiting_;
  auto answer = co_await asio::co_spawn(preview_thread_.executor(), std::move(work), http::until_done_there());
  --previews_waiting_;
  co_return answer;
}

asio::awaitable<http::Checked<api::PlanAnswer>> Planner::preview(api::PlanRequest request,
                                                                 std::optional<Standing> of_group) {
  return in_line(preview_there(std::move(request), std::move(of_group), levels_.constants()));
}

asio::awaitable<http::Checked<api::SimulationAnswer>> Planner::simulate(api::SimulationRequest request) {
  return in_line(simulate_there(std::move(request), levels_.constants()));
}

Planner::Key Planner::key_of(Question const& question) {
  auto const& wish = question.wish;
  auto const number = [](std::optional<std::uint32_t> value) { return value ? static_cast<std::int64_t>(*value) : -1; };
  return {question.group,    question.epoch,          wish.algorithm,
          wish.op,           wish.in_place,           wish.uneven,
          wish.reproducible, wish.without_wider_sums, wish.shape,
          number(wish.root), number(wish.arity),      wish.compression ? to_string(*wish.compression) : std::string(),
          question.elements, question.element_bytes,  question.on_gpus};
}

void Planner::keep(Key const& key, model::Choice const& choice) {
  if (kept_.contains(key)) return;
  recent_.push_front(key);
  kept_.emplace(key, Kept{choice, recent_.begin()});
  if (kept_.size() <= answers_kept) return;
  kept_.erase(recent_.back());
  recent_.pop_back();
}

}  // namespace chorus::coordinator
