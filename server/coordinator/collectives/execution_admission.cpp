// The admission of an execution: asks the ranks for their tensors, or uses the cached metadata.
#include <algorithm>

#include "http/wire/errc.hpp"
#include "server/coordinator/collectives/execution.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

// Limit for admission by the cache. Above it the time of a launch is mostly that of moving the bytes, and a run in vain
// would cost more than asking.
constexpr std::uint64_t most_bytes_unasked = 1 << 20;

}  // namespace

Execution::Stage Execution::admit() {
  if (admit_as_known()) co_return std::nullopt;
  auto const deadline = std::min(deadline_, Clock::now() + patience_.admission);
  auto const question = admission_question();
  looks_.resize(ranks());
  pending_ = question.op == Op::barrier ? 0 : ranks();
  if (pending_ > 0)
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) calls_.spawn("admit rank", look_at_rank(rank, deadline));
  wait_from_now_on(Waits::for_looks);
  while (pending_ > 0 && !failing()) co_await changed_.wait_until(TimePoint::max());
  wait_from_now_on(Waits::for_nobody);
  if (failing()) co_return cancelled_ ? cancelled_ : lost_;
  std::vector<Problem> refusals;
  tensors_.resize(ranks());
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
    auto const& look = looks_[rank];
    if (!look) continue;
    if (look->has_value())
      tensors_[rank] = look->value();
    else if (look->error().code != ProblemCode::unknown_tensor || needs_tensor(question, rank))
      refusals.push_back(look->error());
  }
  if (!refusals.empty()) co_return join_refusals(refusals);
  auto admitted = coordinator::admit(question, tensors_);
  if (admitted.has_error()) co_return admitted.error();
  admitted_ = std::move(admitted.value());
  auto const* known = tools_.group_statistics.tensors.find(group_, question.tensor);
  came_true_ = known != nullptr && known->ranks == tensors_;
  co_return std::nullopt;
}

bool Execution::admit_as_known() {
  auto const question = admission_question();
  auto const* known = mode_ == Mode::launch ? tools_.group_statistics.tensors.find(group_, question.tensor) : nullptr;
  if (known == nullptr || !known->came_true || !leaves_known(question, known->ranks)) return false;
  auto admitted = coordinator::admit(question, known->ranks);
  if (admitted.has_error() || admitted.value().bytes > most_bytes_unasked) return false;
  tensors_ = known->ranks;
  admitted_ = std::move(admitted.value());
  went_by_known_ = true;
  return true;
}

// Caches the ranks' tensors after they have committed these versions.
void Execution::learn_tensors(std::vector<std::uint64_t> const& versions) {
  auto const& tensor = record_->view().request.tensor;
  if (!leaves_known(admission_question(), tensors_)) return tools_.group_statistics.tensors.forget(group_.name, tensor);
  for (std::uint32_t rank = 0; rank < ranks(); ++rank) tensors_[rank]->version = versions[rank];
  tools_.group_statistics.tensors.learn(group_, tensor, {std::move(tensors_), went_by_known_ || came_true_});
}

AdmissionQuestion Execution::admission_question() const {
  auto const& request = record_->view().request;
  return {order_.wish.op,
          request.tensor,
          request.output,
          request.root.value_or(0),
          request.counts.value_or(std::vector<std::uint64_t>()),
          order_.reduce,
          request.in_place};
}

asio::awaitable<void> Execution::look_at_rank(std::uint32_t rank, TimePoint deadline) {
  auto const& member = group_.members[rank];
  auto const& tensor = record_->view().request.tensor;
  auto const answer = co_await tools_.workers.look_at_tensor(member.url, tensor, deadline);
  if (answer.has_error()) {
    looks_[rank] = unanswered(rank, answer.error());
  } else if (answer.value().status == 404 && takes_parts(admission_question())) {
    auto const parts = co_await tools_.workers.list_tensors(member.url, tensor + "/", deadline);
    if (parts.has_error())
      looks_[rank] = unanswered(rank, parts.error());
    else if (parts.value().has_error())
      looks_[rank] = read_tensor(rank, member.worker, tensor, answer.value());
    else
      looks_[rank] = read_parts(rank, member.worker, tensor, parts.value().value());
  } else {
    looks_[rank] = read_tensor(rank, member.worker, tensor, answer.value());
  }
  --pending_;
  changed_.notify_all();
}

Problem Execution::unanswered(std::uint32_t rank, Error const& error) {
  if (error.code == http::HttpErrc::connect_failed) broken_.push_back(rank);
  auto const late = Clock::now() >= deadline_;
  return refused(rank, late ? ProblemCode::deadline_exceeded : ProblemCode::worker_unreachable, error.detail);
}

}  // namespace chorus::coordinator
