#include "worker/parameters/serving/shard_host.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/api/cluster/membership.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

Problem to_problem(Error const& error) {
  Problem problem(ProblemCode::unavailable, error.detail);
  problem.retry_after_s = 1;
  return problem;
}

}  // namespace

ShardHost::ShardHost(ShardTools const& tools, std::unique_ptr<Shard> shard, api::ShardAssignment const& assignment)
    : tools_(tools),
      spec_(shard->spec()),
      shard_(std::move(shard)),
      role_(assignment.role == "owner" ? Role::owner : Role::backup),
      epoch_(assignment.epoch),
      is_complete_(assignment.fresh || assignment.recover),
      changed_(tools.executor),
      offload_(shard_, tools.threads, changed_),
      tasks_(tools.executor) {
  heed_term(assignment);
  set_followers(assignment);
  if (assignment.fresh)
    for (auto const& follower : followers_.list()) follower->stage = Follower::Stage::in_step;
  // A loaded shard may have other clients.
  if (role_ == Role::owner) heed_clients(assignment.parameter.clients);
  if (role_ == Role::owner) begin_logging();
  tasks_.spawn(title(), work());
}

// Frees the shard on another thread, because freeing much memory takes long.
ShardHost::~ShardHost() {
  asio::post(tools_.threads, [shard = std::move(shard_)] {});
}

std::string ShardHost::title() const { return "shard " + std::to_string(spec_.index) + " of " + spec_.parameter; }

void ShardHost::close(Problem why) {
  closed_ = std::move(why);
  end_logging();
  followers_.drop();
  for (auto const& job : queue_) finish(*job, *closed_);
  queue_.clear();
  tasks_.cancel();
  changed_.notify_all();
}

asio::awaitable<void> ShardHost::stop() {
  if (!closed_) close(Problem(ProblemCode::unavailable, "the worker is stopping"));
  co_await tasks_.join();
}

void ShardHost::set_followers(api::ShardAssignment const& assignment) {
  auto const path = api::parameter_path(spec_.parameter) + "/shards/" + std::to_string(spec_.index);
  auto const added = followers_.place(tools_.client, assignment, path, epoch_);
  if (!assignment.fresh)
    for (auto const& follower : added) tasks_.spawn(title() + " to " + follower->peer().worker, fill(follower));
  changed_.notify_all();
}

// Becomes a backup. Its state may differ from the new owner's, so it waits for an image.
void ShardHost::step_down() {
  role_ = Role::backup;
  hold_.reset();
  end_logging();
  is_complete_ = false;
  has_image_ = false;
  followers_.drop();
  followers_.clear();
  changed_.notify_all();
}

std::optional<Problem> ShardHost::assign(api::ShardAssignment const& assignment) {
  if (assignment.epoch < epoch_) {
    Problem problem(ProblemCode::epoch_fenced, "epoch " + std::to_string(assignment.epoch) + " of " + title() +
                                                   " is over: the highest seen is " + std::to_string(epoch_));
    problem.errors.push_back({"/epoch", std::to_string(epoch_)});
    return problem;
  }
  auto const becomes_owner = assignment.role == "owner";
  if (becomes_owner && is_complete_) heed_term(assignment);
  if (assignment.epoch == epoch_ && becomes_owner == (role_ == Role::owner)) return std::nullopt;
  if (becomes_owner && !is_complete_)
    return Problem(ProblemCode::parameter_lost, "this worker does not have all of " + title());
  // A backup whose device has failed needs another GPU for its next image.
  if (!becomes_owner && broken_)
    if (auto const gpu = tools_.memory().roomiest_gpu(); !gpu) return why_not_made(gpu.error());
  epoch_ = assignment.epoch;
  newest_image_ = 0;
  is_fenced_ = false;
  if (!becomes_owner) {
    if (!assignment.continues || role_ == Role::owner) step_down();
    return std::nullopt;
  }
  role_ = Role::owner;
  begin_logging();
  set_followers(assignment);
  heed_clients(assignment.parameter.clients);
  return std::nullopt;
}

// Changes the clients by a push, so that backups make the change at the same place.
void ShardHost::heed_clients(std::vector<std::string> const& clients) {
  auto const counts = shard_->clocks().count();
  std::vector<std::string> present;
  for (auto const& client : shard_->clocks().progress()) present.push_back(client.client);
  if (!counts || present == clients) return;
  auto const job = std::make_shared<Job>();
  job->push.kind = PushKind::clients;
  job->push.dtype = spec_.dtype;
  job->push.clients = clients;
  enqueue(job);
}

Problem ShardHost::misdirected() const {
  if (is_fenced_)
    return {ProblemCode::misdirected,
            "this worker has not heard yet who owns " + title() + " since epoch " + std::to_string(epoch_)};
  return {ProblemCode::misdirected, "this worker is " + std::string(is_complete_ ? "a" : "to become a") +
                                        " backup of " + title() + " in epoch " + std::to_string(epoch_)};
}

void ShardHost::enqueue(JobPtr const& job) {
  queue_.push_back(job);
  changed_.notify_all();
}

// A push that was applied after the end of the lease is not acknowledged: its client repeats it. It counts if this copy
// is still the newest.
void ShardHost::finish(Job& job, http::Checked<api::PushAnswer> answer) {
  if (answer && job.push.kind != PushKind::clients && is_suspended()) answer = suspended();
  auto const seconds = std::chrono::duration<double>(steady_clock::now() - job.begun).count();
  auto const* result = !answer ? "refused" : answer->duplicate ? "duplicate" : "applied";
  if (tools_.events.pushed && role_ == Role::owner && job.push.kind != PushKind::clients)
    tools_.events.pushed(push_kind_names[static_cast<std::size_t>(job.push.kind)], result, seconds);
  job.answer = std::move(answer);
  changed_.notify_all();
}

asio::awaitable<void> ShardHost::until_done(JobPtr job, http::TimePoint deadline) {
  while (!job->answer && !closed_ && steady_clock::now() < deadline) co_await changed_.wait_until(deadline);
  if (!job->answer) job->is_withdrawn = true;
}

asio::awaitable<std::optional<Problem>> ShardHost::refused(Push push) {
  if (auto problem = co_await offload_.refuse(spec_, push)) co_return problem;
  co_return shard_->refuse_client(push);
}

asio::awaitable<http::Checked<api::PushAnswer>> ShardHost::push(Push push, http::TimePoint deadline) {
  auto const self = shared_from_this();
  if (closed_) co_return *closed_;
  if (!serves()) co_return misdirected();
  if (is_suspended()) co_return suspended();
  if (auto problem = co_await refused(push)) co_return std::move(*problem);
  if (logging_)
    if (auto const why = tools_.logs.disk->trouble())
      co_return Problem(ProblemCode::unavailable, title() + ": " + *why + "; repeat it with the same sequence");
  auto const job = std::make_shared<Job>();
  job->push = std::move(push);
  enqueue(job);
  co_await until_done(job, deadline);
  if (job->answer) co_return *job->answer;
  if (closed_) co_return *closed_;
  if (auto problem = why_not_logged(job)) co_return std::move(*problem);
  co_return Problem(ProblemCode::deadline_exceeded,
                    title() + ": " + (job->has_waited ? shard_->why_later(job->push) : "the push has not ended") +
                        "; repeat it with the same sequence");
}

// Returns the first push whose turn it is. Answers pushes that are refused or seen already.
ShardHost::JobPtr ShardHost::next_job() {
  for (auto next = queue_.begin(); next != queue_.end();) {
    auto const job = *next;
    if (job->is_withdrawn) {
      next = queue_.erase(next);
      continue;
    }
    if (job->position) {
      next = queue_.erase(next);
      if (is_next_of_owner(*job)) return job;
      continue;
    }
    auto const may_go = role_ == Role::owner && (!is_suspended() || job->push.kind == PushKind::clients);
    auto const turn =
        may_go ? shard_->turn(job->push) : http::Checked<Shard::Turn>(serves() ? suspended() : misdirected());
    if (turn && *turn == Shard::Turn::later) {
      if (!std::exchange(job->has_waited, true) && tools_.events.waited) tools_.events.waited("push");
      ++next;
      continue;
    }
    if (turn && *turn == Shard::Turn::now && is_held_back(job->push)) {
      ++next;
      continue;
    }
    next = queue_.erase(next);
    // A push that cannot become durable is refused.
    if (auto const failure = log_failure();
        failure && turn && *turn == Shard::Turn::now && job->push.kind != PushKind::clients) {
      finish(*job, *failure);
      continue;
    }
    if (turn && *turn == Shard::Turn::now) return job;
    if (turn)
      answer_when_durable(job, {shard_->version(), epoch_, shard_->window().next_sequence(job->push.client), true});
    else
      finish(*job, turn.error());
  }
  return nullptr;
}

asio::awaitable<void> ShardHost::work() {
  while (!closed_) {
    while (images_wanted_ > 0 || log_is_behind()) co_await changed_.wait_until(http::TimePoint::max());
    co_await look_after_followers();
    if (images_wanted_ > 0 || log_is_behind()) continue;
    if (auto const job = followers_.backlog_is_long(value_bytes()) ? nullptr : next_job()) {
      is_working_ = true;
      co_await serve(job);
      is_working_ = false;
      changed_.notify_all();
      continue;
    }
    if (!followers_.any_is_wanting()) co_await changed_.wait_until(http::TimePoint::max());
  }
}

asio::awaitable<std::optional<Problem>> ShardHost::settle_nonfinite(Push push) {
  if (spec_.nonfinite == NonFinite::accept || push.kind == PushKind::clients || role_ != Role::owner)
    co_return std::nullopt;
  auto const found = co_await offload_.settle_nonfinite(push, spec_.nonfinite);
  if (found == 0) co_return std::nullopt;
  if (tools_.events.nonfinite) tools_.events.nonfinite(found);
  if (spec_.nonfinite != NonFinite::reject) co_return std::nullopt;
  co_return Problem(ProblemCode::non_finite,
                    std::to_string(found) + " elements for " + title() + " are NaN or infinite");
}

asio::awaitable<void> ShardHost::serve(JobPtr job) {
  if (role_ == Role::owner && shard_->rows_to_look_at(job->push) > 0)
    if (auto problem = co_await offload_.lacks_room(job->push)) {
      finish(*job, std::move(*problem));
      co_return;
    }
  if (auto problem = co_await settle_nonfinite(job->push)) {
    finish(*job, std::move(*problem));
    co_return;
  }
  // Before the push is sent: the backups must not apply a push that the owner refuses for lack of memory.
  auto change = co_await offload_.prepare(job->push);
  if (!change && job->push.kind != PushKind::clients) {
    finish(*job, to_problem(change.error()));
    co_return;
  }
  LogEntry entry{shard_->position(), job->push, history_.now()};
  // Prepared again after sending: meanwhile readers may hold values that a change in place would overwrite.
  if (followers_.any_in_step()) change = Error();
  auto const sent = co_await replicate(entry);
  if (!sent) {
    finish(*job, closed_ ? *closed_ : misdirected());
    co_return;
  }
  // Without a backup in step, an owner whose lease is over changes nothing.
  if (is_suspended() && !followers_.any_in_step() && job->push.kind != PushKind::clients) {
    finish(*job, suspended());
    co_return;
  }
  if (auto problem = co_await apply(job->push, std::move(change))) {
    finish(*job, std::move(*problem));
    co_return;
  }
  followers_.add_to_backlogs(entry);
  api::PushAnswer const answer{shard_->version(), epoch_, shard_->window().next_sequence(job->push.client), false};
  if (logging_) log(std::move(entry));
  answer_when_durable(job, answer);
}

// Sends a push to all backups in step. True if all have it and the role has not changed. A backup sends to none.
asio::awaitable<bool> ShardHost::replicate(LogEntry entry) {
  constexpr std::chrono::seconds patience{5};
  constexpr std::chrono::milliseconds before_repeating{20};
  auto const role = role_;
  while (!closed_ && role_ == role) {
    // Looked up again, because the placement may have changed during the last wait.
    auto const follower = followers_.in_step_without(entry.position);
    if (!follower) co_return true;
    auto const epoch = epoch_;
    auto const sent = co_await follower->send(entry, steady_clock::now() + patience);
    if (sent == Follower::Sent::taken) {
      follower->sent_position = entry.position;
      continue;
    }
    // The backup may have heard of this owner's next epoch before the push arrived.
    if (sent == Follower::Sent::fenced && epoch != epoch_) continue;
    // Either another worker owns the shard, or this one does in an epoch of which it has not heard yet. Until it hears,
    // it keeps its copy, which may be the only one.
    if (sent == Follower::Sent::fenced && !follower->is_dropped) {
      is_fenced_ = true;
      co_return false;
    }
    if (follower->is_dropped) continue;
    if (tools_.events.unreachable) tools_.events.unreachable(follower->peer().worker, follower->peer().incarnation);
    co_await pause(before_repeating);
  }
  co_return false;
}

// Applies a push. `change` was prepared just before, without a wait in between, or is an error: then it is prepared
// here. Returns a problem if the device has failed.
asio::awaitable<std::optional<Problem>> ShardHost::apply(Push push, Result<Shard::Change> change) {
  constexpr std::chrono::milliseconds before_repeating{10};
  for (;; change = Error()) {
    if (!change) change = co_await offload_.prepare(push);
    auto computed = change ? ok() : Status(change.error());
    if (change) computed = co_await offload_.compute(&*change);
    if (computed) {
      auto const rows_before = shard_->rows().value_or(0);
      shard_->finish(std::move(*change));
      history_.take(push);
      auto const created = shard_->rows().value_or(0) - rows_before;
      if (created > 0 && role_ == Role::owner && tools_.events.rows_created) tools_.events.rows_created(created);
      co_return std::nullopt;
    }
    // If only memory was lacking, nothing has changed, and the push is tried again. A value can be written again, too.
    auto const is_lost = shard_->gpu() != nullptr && shard_->gpu()->lost();
    auto const may_repeat = !change || push.kind == PushKind::value;
    if (is_lost || !may_repeat) co_return break_down(computed.error());
    co_await pause(before_repeating);
  }
}

asio::awaitable<void> ShardHost::pause(std::chrono::milliseconds duration) {
  asio::steady_timer timer(tools_.executor, duration);
  co_await timer.async_wait(asio::use_awaitable);
}

std::optional<ShardHost::View> ShardHost::view_now() const {
  if (closed_ || role_ != Role::owner || is_suspended() || offload_.is_writing() || !shard_->values())
    return std::nullopt;
  return View{shard_->values(), shard_->version(), epoch_};
}

// Makes the copy of the GPU's values for readers, unless another call is making it.
asio::awaitable<std::optional<Problem>> ShardHost::download(http::TimePoint deadline) {
  if (offload_.is_lent()) {
    if (steady_clock::now() >= deadline)
      co_return Problem(ProblemCode::deadline_exceeded, title() + " is being read from its device");
    co_await changed_.wait_until(deadline);
    co_return std::nullopt;
  }
  auto const downloaded = co_await offload_.download();
  if (!downloaded) co_return heed(downloaded.error());
  co_return std::nullopt;
}

asio::awaitable<http::Checked<ShardHost::View>> ShardHost::view(ReadConstraints constraints, http::TimePoint deadline) {
  auto const self = shared_from_this();
  // After each wait the shard object may have been replaced.
  for (bool has_waited = false;; has_waited = true) {
    if (closed_) co_return *closed_;
    if (!serves()) co_return misdirected();
    auto const is_open = !constraints.clock || shard_->clocks().is_open(*constraints.clock);
    auto const is_new = !constraints.min_version || shard_->version() >= *constraints.min_version;
    if (is_open && is_new && !offload_.is_writing()) {
      if (shard_->values()) break;
      if (auto problem = co_await download(deadline)) co_return std::move(*problem);
      continue;
    }
    if (steady_clock::now() >= deadline) {
      auto const why = is_open ? "version " + std::to_string(constraints.min_version.value_or(0)) + " was asked for, " +
                                     std::to_string(shard_->version()) + " is the newest"
                               : shard_->why_clock_waits(*constraints.clock);
      co_return Problem(ProblemCode::deadline_exceeded, title() + ": " + why);
    }
    if (!has_waited && !offload_.is_writing() && tools_.events.waited) tools_.events.waited("pull");
    co_await changed_.wait_until(deadline);
  }
  auto const& clocks = shard_->clocks();
  if (constraints.clock && clocks.count() && tools_.events.read_behind)
    tools_.events.read_behind(*constraints.clock - std::min(*constraints.clock, clocks.slowest()));
  co_return View{shard_->values(), shard_->version(), epoch_, is_suspended()};
}

}  // namespace chorus::parameters
