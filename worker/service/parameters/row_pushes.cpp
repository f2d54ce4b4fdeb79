#include "worker/service/parameters/row_pushes.hpp"

#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/parameters/parameter_tags.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::Access;
using std::chrono::steady_clock;

// Resolves the answer at the end of a task, also of a cancelled one.
struct Answering {
  std::shared_ptr<Pending<Checked<Access::Outcome>>> pending;
  Checked<Access::Outcome> answer = Problem(ProblemCode::unavailable, "the worker stops; repeat the same push");

  explicit Answering(std::shared_ptr<Pending<Checked<Access::Outcome>>> p) : pending(std::move(p)) {}
  ~Answering() { Pending<Checked<Access::Outcome>>::resolve(pending, std::move(answer)); }
  Answering(Answering const&) = delete;
  Answering& operator=(Answering const&) = delete;
};

}  // namespace

awaitable<void> RowPushes::stop() {
  parts_.cancel();
  co_await parts_.join();
}

awaitable<RowPushes::Answer> RowPushes::push(parameters::PlacementPtr placement, parameters::Push push,
                                             http::Body& body, http::TimePoint deadline) {
  // The time limit is for the owners, not for a client that sends slowly.
  auto const patience = deadline - steady_clock::now();
  auto const width = placement->row_elements;
  auto const row_bytes = width * element_bytes(push.dtype);
  auto const index = co_await receive_prepared(body, push.rows * sizeof(std::uint64_t), tools_.pool, tools_.helper);
  if (!index) co_return index.error();
  auto const numbers = co_await tools_.reader.checked_rows(*index, push.rows, 0, {0, placement->elements / width});
  if (!numbers) co_return numbers.error();
  std::vector<AnswerPtr> pending_answers;
  // Every shard gets every sequence number, even without a row, because it expects the numbers in order.
  for (auto const& owner : placement->owners) {
    auto const rows = parameters::part_of(*numbers, {owner.elements[0] / width, owner.elements[1] / width});
    auto const own_numbers = std::as_bytes(numbers->subspan(rows.first, rows.count));
    auto const arriving =
        ArrivingBlock::announce(tools_.pool, tools_.helper, own_numbers.size() + rows.count * row_bytes);
    if (!arriving) co_return to_problem(arriving.error());
    if (auto problem = co_await (*arriving)->copy(own_numbers, 0)) co_return std::move(*problem);
    auto const read = co_await (*arriving)->read(body, own_numbers.size(), rows.count * row_bytes);
    if (!read) co_return read.error();
    auto part = push;
    part.rows = rows.count;
    part.data = (*arriving)->block();
    pending_answers.push_back(std::make_shared<Pending<Answer>>(tools_.executor));
    parts_.spawn(
        "rows of " + placement->parameter.name,
        push_part(placement, owner.shard, std::move(part), steady_clock::now() + patience, pending_answers.back()));
  }
  std::vector<Access::Outcome> outcomes;
  std::optional<Problem> problem;
  for (auto const& pending : pending_answers) {
    auto answer = co_await pending->take();
    if (answer)
      outcomes.push_back(std::move(*answer));
    else if (!problem)
      problem = answer.error();
  }
  if (problem) co_return std::move(*problem);
  co_return Access::joined(outcomes);
}

awaitable<void> RowPushes::push_part(parameters::PlacementPtr placement, std::uint32_t shard, parameters::Push push,
                                     http::TimePoint deadline, AnswerPtr pending) {
  Answering answering(std::move(pending));
  answering.answer = co_await answer_of(std::move(placement), shard, std::move(push), deadline);
}

awaitable<RowPushes::Answer> RowPushes::answer_of(parameters::PlacementPtr placement, std::uint32_t shard,
                                                  parameters::Push push, http::TimePoint deadline) {
  if (auto const host = tools_.book.find(placement->parameter.name, shard)) {
    auto const answer = co_await (*host)->push(push, deadline);
    if (answer) {
      Access::Outcome here;
      here.epoch = answer->epoch;
      here.version = answer->version;
      here.tags = {tag_of(answer->epoch, answer->version)};
      here.next_sequence = answer->next_sequence;
      here.duplicate = answer->duplicate;
      co_return here;
    }
    auto const code = answer.error().code;
    if (code != ProblemCode::misdirected && code != ProblemCode::unavailable) co_return answer.error();
    // The shard may have another owner, which knows whether the push was applied.
  }
  auto outcome = co_await tools_.access.push_rows_of(placement, shard, std::move(push), deadline);
  if (outcome) outcome->tags = {outcome->tags.at(shard)};
  co_return outcome;
}

}  // namespace chorus::service
