#include "server/coordinator/collectives/rank_tensors.hpp"

#include <chrono>
#include <utility>

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

bool tells_another_tensor(ProblemCode code) {
  return code == ProblemCode::mismatch || code == ProblemCode::unknown_tensor || code == ProblemCode::busy ||
         code == ProblemCode::unsupported || code == ProblemCode::invalid_field;
}

RankTensors::RankTensors(api::Group const& group, AdmissionQuestion question, TensorMetadataCache& cache,
                         WorkerClient& workers)
    : group_(group),
      question_(std::move(question)),
      cache_(cache),
      workers_(workers),
      answers_(group.members.size()),
      tensors_(group.members.size()) {}

bool RankTensors::admit_as_known() {
  auto const* known = cache_.find(group_, question_.tensor);
  if (known == nullptr || !known->came_true || !leaves_known(question_, known->ranks)) return false;
  auto admitted = coordinator::admit(question_, known->ranks);
  if (admitted.has_error() || admitted.value().bytes > most_bytes_unasked) return false;
  tensors_ = known->ranks;
  admitted_ = std::move(admitted.value());
  went_by_known_ = true;
  return true;
}

asio::awaitable<Status> RankTensors::ask(std::uint32_t rank, http::TimePoint deadline) {
  auto const& member = group_.members[rank];
  auto const& tensor = question_.tensor;
  auto const answer = co_await workers_.look_at_tensor(member.url, tensor, deadline);
  if (answer.has_error()) co_return answer.error();
  if (answer.value().status != 404 || !takes_parts(question_)) {
    answers_[rank] = read_tensor(rank, member.worker, tensor, answer.value());
    co_return ok();
  }
  auto const parts = co_await workers_.list_tensors(member.url, tensor + "/", deadline);
  if (parts.has_error()) co_return parts.error();
  answers_[rank] = parts.value().has_error() ? read_tensor(rank, member.worker, tensor, answer.value())
                                             : read_parts(rank, member.worker, tensor, parts.value().value());
  co_return ok();
}

std::optional<Problem> RankTensors::admit() {
  std::vector<Problem> refusals;
  for (std::uint32_t rank = 0; rank < answers_.size(); ++rank) {
    auto const& answer = answers_[rank];
    if (!answer) continue;
    if (answer->has_value())
      tensors_[rank] = answer->value();
    else if (answer->error().code != ProblemCode::unknown_tensor || needs_tensor(question_, rank))
      refusals.push_back(answer->error());
  }
  if (!refusals.empty()) return join_refusals(refusals);
  auto admitted = coordinator::admit(question_, tensors_);
  if (admitted.has_error()) return admitted.error();
  admitted_ = std::move(admitted.value());
  auto const* known = cache_.find(group_, question_.tensor);
  came_true_ = known != nullptr && known->ranks == tensors_;
  return std::nullopt;
}

void RankTensors::learn(std::vector<std::uint64_t> const& versions) {
  if (!leaves_known(question_, tensors_)) return forget();
  for (std::size_t rank = 0; rank < tensors_.size(); ++rank) tensors_[rank]->version = versions[rank];
  cache_.learn(group_, question_.tensor, {std::move(tensors_), went_by_known_ || came_true_});
}

}  // namespace chorus::coordinator
