#include "worker/parameters/serving/shard_host.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

std::string title_of(ShardSpec const& spec) { return "shard " + std::to_string(spec.index) + " of " + spec.parameter; }

}  // namespace

ShardHost::ShardHost(ShardTools const& tools, std::unique_ptr<Shard> shard, api::ShardAssignment const& assignment)
    : tools_(tools),
      changed_(tools.executor),
      tenure_(title_of(shard->spec()), tools.lease, assignment),
      copy_(tools, std::move(shard), tenure_, changed_, [this](std::string const& why) { heed_loss(why); }),
      queue_(tools, tenure_, changed_),
      tasks_(tools.executor),
      followers_(tools, copy_, tenure_, tasks_),
      following_(tools, copy_, tenure_, queue_),
      reader_(tools, copy_, tenure_),
      hold_(copy_, tenure_, tasks_) {
  followers_.place(assignment);
  if (assignment.fresh) followers_.start_in_step();
  // A loaded shard may have other clients.
  if (tenure_.is_owner()) heed_clients(assignment.parameter.clients);
  if (tenure_.is_owner()) begin_logging();
  tasks_.spawn(tenure_.title(), work());
}

void ShardHost::close(Problem why) {
  tenure_.close(why);
  if (auto const log = std::exchange(log_, nullptr)) log->end(why);
  followers_.drop();
  queue_.close(why);
  tasks_.cancel();
  changed_.notify_all();
}

asio::awaitable<void> ShardHost::stop() {
  if (!tenure_.is_closed()) close(Problem(ProblemCode::unavailable, "the worker is stopping"));
  co_await tasks_.join();
}

// Becomes a backup. Its state may differ from the new owner's, so it waits for an image.
void ShardHost::step_down() {
  tenure_.set_role(Role::backup);
  hold_.let_go();
  if (auto const log = std::exchange(log_, nullptr)) log->end(tenure_.closed_or_misdirected());
  following_.want_image();
  followers_.clear();
  changed_.notify_all();
}

// The shard's state is unknown now. An owner becomes a backup that waits for an image. The loss is reported, and the
// coordinator finds another owner.
void ShardHost::heed_loss(std::string const& why) {
  if (tenure_.is_owner()) step_down();
  following_.lose_content();
  changed_.notify_all();
  if (tools_.events.lost) tools_.events.lost(spec().parameter, spec().index, why);
}

std::optional<Problem> ShardHost::assign(api::ShardAssignment const& assignment) {
  if (auto problem = tenure_.why_outdated(assignment.epoch)) return problem;
  auto const becomes_owner = assignment.role == "owner";
  auto const was_owner = tenure_.is_owner();
  if (becomes_owner && is_complete()) tenure_.confirm(assignment);
  if (assignment.epoch == epoch() && becomes_owner == was_owner) return std::nullopt;
  if (becomes_owner && !is_complete())
    return Problem(ProblemCode::parameter_lost, "this worker does not have all of " + tenure_.title());
  // A backup whose device has failed needs another GPU for its next image.
  if (!becomes_owner && copy_.broken())
    if (auto const gpu = tools_.memory().roomiest_gpu(); !gpu) return why_not_made(gpu.error());
  tenure_.begin(assignment.epoch);
  following_.begin_epoch();
  if (!becomes_owner) {
    if (!assignment.continues || was_owner) step_down();
    return std::nullopt;
  }
  tenure_.set_role(Role::owner);
  begin_logging();
  followers_.place(assignment);
  heed_clients(assignment.parameter.clients);
  return std::nullopt;
}

// Changes the clients by a push, so that backups make the change at the same place.
void ShardHost::heed_clients(std::vector<std::string> const& clients) {
  auto const& clocks = copy_.shard().clocks();
  std::vector<std::string> present;
  for (auto const& client : clocks.progress()) present.push_back(client.client);
  if (!clocks.count() || present == clients) return;
  Push change;
  change.kind = PushKind::clients;
  change.dtype = spec().dtype;
  change.clients = clients;
  queue_.add(std::move(change));
}

asio::awaitable<http::Checked<api::PushAnswer>> ShardHost::push(Push push, http::TimePoint deadline) {
  auto const self = shared_from_this();
  if (auto problem = tenure_.why_not_serving()) co_return std::move(*problem);
  if (is_suspended()) co_return tenure_.suspended();
  if (auto problem = co_await copy_.refuse(push)) co_return std::move(*problem);
  auto const& title = tenure_.title();
  if (log_)
    if (auto const why = tools_.logs.disk->trouble())
      co_return Problem(ProblemCode::unavailable, title + ": " + *why + "; repeat it with the same sequence");
  auto const job = queue_.add(std::move(push));
  co_await queue_.until_answered(job, deadline);
  if (job->answer) co_return *job->answer;
  if (tenure_.is_closed()) co_return tenure_.closed_or_misdirected();
  if (log_)
    if (auto problem = log_->why_not_durable(job)) co_return std::move(*problem);
  auto const why = job->has_waited ? copy_.shard().why_later(job->push) : "the push has not ended";
  co_return Problem(ProblemCode::deadline_exceeded, title + ": " + why + "; repeat it with the same sequence");
}

// Answers pushes that are refused or seen already.
PushQueue::Turn ShardHost::turn(JobPtr const& job) {
  if (job->from_owner) return following_.turn(*job);
  auto const is_of_client = job->push.kind != PushKind::clients;
  auto const may_go = tenure_.is_owner() && (!is_suspended() || !is_of_client);
  auto const turn = may_go
                        ? copy_.shard().turn(job->push)
                        : http::Checked<Shard::Turn>(serves() ? tenure_.suspended() : tenure_.closed_or_misdirected());
  if (turn && *turn == Shard::Turn::later) {
    if (!std::exchange(job->has_waited, true) && tools_.events.waited) tools_.events.waited("push");
    return PushQueue::Turn::later;
  }
  if (!turn) {
    queue_.answer(*job, turn.error());
  } else if (*turn == Shard::Turn::seen) {
    acknowledge(job, true);
  } else if (hold_.holds_back(job->push)) {
    return PushQueue::Turn::later;
  } else if (auto failure = log_failure(); failure && is_of_client) {
    queue_.answer(*job, std::move(*failure));  // it cannot become durable
  } else {
    return PushQueue::Turn::now;
  }
  return PushQueue::Turn::never;
}

bool ShardHost::must_wait() const { return copy_.is_paused() || (log_ && log_->is_behind()); }

asio::awaitable<void> ShardHost::work() {
  std::function<PushQueue::Turn(JobPtr const&)> const turn_of = [this](JobPtr const& job) { return turn(job); };
  while (!tenure_.is_closed()) {
    while (must_wait()) {
      copy_.set_push_waits(copy_.is_paused() && !queue_.is_empty());
      co_await changed_.wait_until(http::TimePoint::max());
    }
    co_await followers_.look_after();
    if (must_wait()) continue;
    auto const job = followers_.backlog_is_long() ? nullptr : queue_.next(turn_of);
    if (job) copy_.begin_work();
    copy_.set_push_waits(false);
    if (job) {
      co_await serve(job);
      copy_.end_work();
      continue;
    }
    if (!followers_.any_is_wanting()) co_await changed_.wait_until(http::TimePoint::max());
  }
}

asio::awaitable<std::optional<Problem>> ShardHost::settle_nonfinite(Push push) {
  auto const nonfinite = spec().nonfinite;
  if (nonfinite == NonFinite::accept || push.kind == PushKind::clients || !tenure_.is_owner()) co_return std::nullopt;
  auto const found = co_await copy_.offload().settle_nonfinite(push, nonfinite);
  if (found == 0) co_return std::nullopt;
  if (tools_.events.nonfinite) tools_.events.nonfinite(found);
  if (nonfinite != NonFinite::reject) co_return std::nullopt;
  co_return Problem(ProblemCode::non_finite,
                    std::to_string(found) + " elements for " + tenure_.title() + " are NaN or infinite");
}

asio::awaitable<void> ShardHost::serve(JobPtr job) {
  auto const is_of_client = job->push.kind != PushKind::clients;
  if (tenure_.is_owner() && copy_.shard().rows_to_look_at(job->push) > 0)
    if (auto problem = co_await copy_.offload().lacks_room(job->push)) {
      queue_.answer(*job, std::move(*problem));
      co_return;
    }
  if (auto problem = co_await settle_nonfinite(job->push)) {
    queue_.answer(*job, std::move(*problem));
    co_return;
  }
  // Before the push is sent: the backups must not apply a push that the owner refuses for lack of memory.
  auto change = co_await copy_.offload().prepare(job->push);
  if (!change && is_of_client) {
    Problem problem(ProblemCode::unavailable, change.error().detail);
    problem.retry_after_s = 1;
    queue_.answer(*job, std::move(problem));
    co_return;
  }
  // The preparation may have outlasted the ownership.
  if (!job->from_owner && !tenure_.is_owner()) {
    queue_.answer(*job, tenure_.closed_or_misdirected());
    co_return;
  }
  LogEntry entry{copy_.shard().position(), job->push, copy_.history().now()};
  // Prepared again after sending: meanwhile readers may hold values that a change in place would overwrite.
  if (followers_.any_in_step()) change = Error();
  auto const sent = co_await followers_.send(entry);
  if (!sent) {
    queue_.answer(*job, tenure_.closed_or_misdirected());
    co_return;
  }
  // Without a backup in step, an owner whose lease is over changes nothing.
  if (is_suspended() && !followers_.any_in_step() && is_of_client) {
    queue_.answer(*job, tenure_.suspended());
    co_return;
  }
  if (auto problem = co_await copy_.apply(job->push, std::move(change))) {
    queue_.answer(*job, std::move(*problem));
    co_return;
  }
  followers_.add_to_backlogs(entry);
  if (log_) log_->add(std::move(entry));
  acknowledge(job, false);
}

void ShardHost::acknowledge(JobPtr const& job, bool is_duplicate) {
  auto const& shard = copy_.shard();
  api::PushAnswer const answer{shard.version(), epoch(), shard.window().next_sequence(job->push.client), is_duplicate};
  if (log_)
    log_->answer_when_durable(job, answer);
  else
    queue_.answer(*job, answer);
}

void ShardHost::begin_logging() {
  if (!spec().is_logged || log_ || tenure_.is_closed()) return;
  log_ = std::make_shared<OwnerLog>(tools_, copy_, tenure_, queue_, tasks_);
  tasks_.spawn("log of " + tenure_.title(), OwnerLog::keep(log_));
}

std::optional<Problem> ShardHost::log_failure() const { return log_ ? log_->failure() : std::nullopt; }

asio::awaitable<std::optional<Problem>> ShardHost::until_logged(http::TimePoint deadline) {
  auto const self = shared_from_this();
  while (log_ && !log_->has_base() && !log_->failure() && !tenure_.is_closed() && steady_clock::now() < deadline)
    co_await changed_.wait_until(deadline);
  if (tenure_.is_closed()) co_return tenure_.closed_or_misdirected();
  if (auto failure = log_failure()) co_return failure;
  if (log_ && !log_->has_base())
    co_return Problem(ProblemCode::deadline_exceeded, "the log of " + tenure_.title() + " has not been written yet");
  co_return std::nullopt;
}

asio::awaitable<void> ShardHost::remove_log() {
  if (!spec().is_logged || tools_.logs.root.empty()) co_return;
  auto const removed = co_await DiskLog::remove(*tools_.logs.disk, tenure_.title(),
                                                log_directory(tools_.logs.root, spec().parameter, spec().index),
                                                std::uint64_t{epoch()} + 1);
  if (!removed && tools_.events.log_failed) tools_.events.log_failed(tenure_.title(), removed.error().detail);
}

api::ShardStatus ShardHost::status() const {
  auto const& shard = copy_.shard();
  api::ShardStatus status;
  status.parameter = spec().parameter;
  status.shard = spec().index;
  status.begin = spec().begin;
  status.end = spec().end;
  status.epoch = epoch();
  status.role = tenure_.is_owner() ? "owner" : "backup";
  status.complete = is_complete();
  status.version = shard.version();
  status.position = shard.position();
  status.rows = shard.rows();
  status.unconfirmed = tenure_.is_unconfirmed();
  status.backups_complete = followers_.in_step();
  if (shard.clocks().count())
    for (auto const& client : shard.clocks().progress()) status.clocks.push_back({client.client, client.done});
  return status;
}

}  // namespace chorus::parameters
