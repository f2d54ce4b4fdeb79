#include "server/coordinator/cluster/tell_members.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "server/coordinator/admission/admission.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;

constexpr std::uint32_t highest_epoch_believed = 1u << 31;  // limit for epochs that a worker claims to have seen

// Returns the epoch that a refusing worker has seen; the refused epoch itself if the worker does not report one.
std::uint32_t epoch_seen_by(Problem const& refusal, std::uint32_t refused) {
  for (auto const& error : refusal.errors) {
    std::uint32_t seen = 0;
    auto const* const end = error.detail.data() + error.detail.size();
    auto const [rest, failure] = std::from_chars(error.detail.data(), end, seen);
    if (error.pointer == "/group/epoch" && failure == std::errc() && rest == end && seen < highest_epoch_believed)
      return std::max(seen, refused);
  }
  return refused;
}

// Ends a task also if it is cancelled.
class Running {
 public:
  Running(std::size_t& running, http::Condition& changed) : running_(running), changed_(changed) {}
  ~Running() {
    --running_;
    changed_.notify_all();
  }
  Running(Running const&) = delete;
  Running& operator=(Running const&) = delete;

 private:
  std::size_t& running_;
  http::Condition& changed_;
};

}  // namespace

TellMembers::TellMembers(WorkerClient& workers, asio::any_io_executor executor, api::Group group,
                         std::vector<api::Member> members, std::string token, http::TimePoint deadline)
    : workers_(workers),
      members_(std::move(members)),
      message_(std::make_shared<EpochMessage const>(std::move(group), std::move(token))),
      deadline_(deadline),
      running_(tasks()),
      changed_(std::move(executor)) {}

asio::awaitable<void> TellMembers::some(std::shared_ptr<TellMembers> tell,
                                        std::function<void(api::Member const&)> on_silent) {
  Running const running(tell->running_, tell->changed_);
  while (tell->next_ < tell->members_.size()) {
    auto const& member = tell->members_[tell->next_++];
    auto const said = co_await tell->workers_.assign(tell->message_, member, tell->deadline_);
    if (auto problem = tell->refusal_of(member, said)) tell->refusals_.push_back(std::move(*problem));
    if (said.has_error()) on_silent(member);
  }
}

asio::awaitable<void> TellMembers::all() {
  while (running_ > 0) co_await changed_.wait_until(http::TimePoint::max());
}

std::optional<Problem> TellMembers::refusal_of(api::Member const& member, WorkerClient::Said<bool> const& said) {
  auto const title = "rank " + std::to_string(member.rank) + " ('" + member.worker + "')";
  auto const epoch = message_->epoch();
  auto problem = Problem();
  if (said.has_error()) {
    problem = Problem(ProblemCode::worker_unreachable,
                      title + " did not take epoch " + std::to_string(epoch) + ": " + said.error().detail);
  } else if (said.value().has_error()) {
    auto const& answer = said.value().error();
    auto const fenced = answer.code == ProblemCode::epoch_fenced;
    auto const code = fenced ? answer.code : ProblemCode::worker_unreachable;
    if (fenced) epoch_seen_ = std::max(epoch_seen_, epoch_seen_by(answer, epoch));
    problem = Problem(code, title + " refused epoch " + std::to_string(epoch) + ": " + answer.detail);
  } else {
    return std::nullopt;
  }
  problem.ranks = {member.rank};
  return problem;
}

std::optional<Problem> TellMembers::refusal() const {
  if (refusals_.empty()) return std::nullopt;
  auto refusals = refusals_;
  std::ranges::sort(refusals, {}, [](Problem const& problem) { return problem.ranks.front(); });
  auto const worst = std::ranges::find_if(refusals, [](auto const& p) { return p.code != ProblemCode::epoch_fenced; });
  if (worst != refusals.end()) std::iter_swap(refusals.begin(), worst);
  return join_refusals(refusals);
}

}  // namespace chorus::coordinator
