#include "worker/parameters/serving/copy/push_queue.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace chorus::parameters {

namespace asio = boost::asio;
using std::chrono::steady_clock;

PushQueue::JobPtr PushQueue::add(Push push, std::optional<PushJob::FromOwner> from_owner) {
  auto job = std::make_shared<PushJob>();
  job->push = std::move(push);
  job->from_owner = from_owner;
  jobs_.push_back(job);
  changed_.notify_all();
  return job;
}

// A push that was applied after the end of the lease or of the ownership is not acknowledged: its client repeats it. It
// counts if this copy is still the newest, or if the new owner has it.
void PushQueue::answer(PushJob& job, http::Checked<api::PushAnswer> answer) {
  auto const is_of_client = job.push.kind != PushKind::clients;
  if (answer && is_of_client && tenure_.is_suspended()) answer = tenure_.suspended();
  if (answer && !job.from_owner)
    if (auto problem = tenure_.why_not_serving()) answer = std::move(*problem);
  auto const seconds = std::chrono::duration<double>(steady_clock::now() - job.begun).count();
  auto const* result = !answer ? "refused" : answer->duplicate ? "duplicate" : "applied";
  if (tools_.events.pushed && tenure_.is_owner() && is_of_client)
    tools_.events.pushed(push_kind_names[static_cast<std::size_t>(job.push.kind)], result, seconds);
  job.answer = std::move(answer);
  changed_.notify_all();
}

asio::awaitable<void> PushQueue::until_answered(JobPtr job, http::TimePoint deadline) {
  while (!job->answer && !tenure_.is_closed() && steady_clock::now() < deadline) co_await changed_.wait_until(deadline);
  if (!job->answer) job->is_withdrawn = true;
}

PushQueue::JobPtr PushQueue::next(std::function<Turn(JobPtr const&)> const& turn) {
  for (auto next = jobs_.begin(); next != jobs_.end();) {
    auto const job = *next;
    auto const when = job->is_withdrawn ? Turn::never : turn(job);
    next = when == Turn::later ? std::next(next) : jobs_.erase(next);
    if (when == Turn::now) return job;
  }
  return nullptr;
}

void PushQueue::close(http::Problem const& why) {
  for (auto const& job : jobs_) answer(*job, why);
  jobs_.clear();
}

}  // namespace chorus::parameters
