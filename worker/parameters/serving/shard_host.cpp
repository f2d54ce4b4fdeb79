#include "worker/parameters/serving/shard_host.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/api/membership.hpp"
#include "http/until_done_there.hpp"
#include "worker/parameters/optimizers/nonfinite.hpp"
#include "worker/parameters/serving/slices.hpp"
#include "worker/parameters/shard/step.hpp"

namespace chorus::parameters {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

// Arithmetic over more goes to other threads, in slices that stay in a core's cache with what belongs to them.
constexpr std::uint64_t inline_bytes = 512 << 10, slice_elements = 64 << 10;

asio::awaitable<Status> compute_there(Shard::Change* change, asio::thread_pool* threads) {
  if (auto begun = change->begin(); !begun) co_return begun;
  compute_in_slices(*threads, change->elements(), slice_elements,
                    [change](std::uint64_t first, std::uint64_t count) { change->compute(first, count); });
  co_return ok();
}

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
      tasks_(tools.executor) {
  set_followers(assignment);
  if (assignment.fresh)
    for (auto const& follower : followers_) follower->stage = Follower::Stage::in_step;
  // What was loaded may have counted others.
  if (role_ == Role::owner) heed_clients(assignment.parameter.clients);
  if (role_ == Role::owner) begin_logging();
  tasks_.spawn(title(), work());
}

ShardHost::~ShardHost() = default;

std::string ShardHost::title() const { return "shard " + std::to_string(spec_.index) + " of " + spec_.parameter; }

void ShardHost::close(Problem why) {
  closed_ = std::move(why);
  end_logging();
  for (auto const& follower : followers_) follower->is_dropped = true;
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
  std::list<FollowerPtr> followers;
  for (auto const& peer : assignment.backups) {
    auto const same = [&](FollowerPtr const& follower) {
      return follower->peer().worker == peer.worker && follower->peer().incarnation == peer.incarnation;
    };
    auto const found = std::ranges::find_if(followers_, same);
    if (assignment.continues && found != followers_.end()) {
      (*found)->set_epoch(epoch_);
      followers.push_back(*found);
      continue;
    }
    FollowerAddress address{peer.url + api::parameter_path(spec_.parameter) + "/shards/" + std::to_string(spec_.index),
                            epoch_};
    // What has followed a former owner may be where this one is; it is asked, and filled if it is not.
    auto const first = assignment.continues ? Follower::Stage::wants_step : Follower::Stage::wants_image;
    followers.push_back(std::make_shared<Follower>(tools_.client, peer, std::move(address), first));
    if (assignment.continues) followers.back()->may_refuse_until = steady_clock::now() + std::chrono::seconds(2);
    if (!assignment.fresh) tasks_.spawn(title() + " to " + peer.worker, fill(followers.back()));
  }
  for (auto const& follower : followers_)
    if (std::ranges::find(followers, follower) == followers.end()) follower->is_dropped = true;
  followers_ = std::move(followers);
  changed_.notify_all();
}

// What it has may differ from what the new owner has: it waits for an image.
void ShardHost::step_down() {
  role_ = Role::backup;
  hold_.reset();
  end_logging();
  is_complete_ = false;
  has_image_ = false;
  for (auto const& follower : followers_) follower->is_dropped = true;
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
  if (assignment.epoch == epoch_ && becomes_owner == (role_ == Role::owner)) return std::nullopt;
  if (becomes_owner && !is_complete_)
    return Problem(ProblemCode::parameter_lost, "this worker does not have all of " + title());
  // A backup whose device has failed needs another one for the image that is to come.
  if (!becomes_owner && broken_)
    if (auto const gpu = tools_.memory().roomiest_gpu(); !gpu) return why_not_made(gpu.error());
  epoch_ = assignment.epoch;
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

// As a push among the others, so that backups make the change at the same place.
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
  return {ProblemCode::misdirected, "this worker is " + std::string(is_complete_ ? "a" : "to become a") +
                                        " backup of " + title() + " in epoch " + std::to_string(epoch_)};
}

api::ShardStatus ShardHost::status() const {
  api::ShardStatus status;
  status.parameter = spec_.parameter;
  status.shard = spec_.index;
  status.begin = spec_.begin;
  status.end = spec_.end;
  status.epoch = epoch_;
  status.role = role_ == Role::owner ? "owner" : "backup";
  status.complete = is_complete_;
  status.version = shard_->version();
  status.position = shard_->position();
  status.rows = shard_->rows();
  for (auto const& follower : followers_)
    if (follower->stage == Follower::Stage::in_step) status.backups_complete.push_back(follower->peer().worker);
  if (shard_->clocks().count())
    for (auto const& client : shard_->clocks().progress()) status.clocks.push_back({client.client, client.done});
  return status;
}

void ShardHost::enqueue(JobPtr const& job) {
  queue_.push_back(job);
  changed_.notify_all();
}

void ShardHost::finish(Job& job, http::Checked<api::PushAnswer> answer) {
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

asio::awaitable<http::Checked<api::PushAnswer>> ShardHost::push(Push push, http::TimePoint deadline) {
  auto const self = shared_from_this();
  if (closed_) co_return *closed_;
  if (role_ != Role::owner) co_return misdirected();
  if (auto problem = shard_->refuse(push)) co_return std::move(*problem);
  auto const job = std::make_shared<Job>();
  job->push = std::move(push);
  enqueue(job);
  co_await until_done(job, deadline);
  if (job->answer) co_return *job->answer;
  if (closed_) co_return *closed_;
  co_return Problem(ProblemCode::deadline_exceeded,
                    title() + ": " + (job->has_waited ? shard_->why_later(job->push) : "the push has not ended") +
                        "; repeat it with the same sequence");
}

// The first whose turn it is. Those that are refused or seen are answered on the way.
ShardHost::JobPtr ShardHost::next_job() {
  for (auto next = queue_.begin(); next != queue_.end();) {
    auto const job = *next;
    if (job->is_withdrawn) {
      next = queue_.erase(next);
      continue;
    }
    if (job->position) {
      next = queue_.erase(next);
      if (*job->position == shard_->position() && role_ == Role::backup) return job;
      if (*job->position < shard_->position())
        finish(*job, api::PushAnswer{});
      else
        finish(*job, Problem(ProblemCode::out_of_order,
                             title() + " is at position " + std::to_string(shard_->position()) + " here"));
      continue;
    }
    auto const turn = role_ == Role::owner ? shard_->turn(job->push) : http::Checked<Shard::Turn>(misdirected());
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
    if (auto const job = backlog_is_long() ? nullptr : next_job()) {
      is_working_ = true;
      co_await serve(job);
      is_working_ = false;
      changed_.notify_all();
      continue;
    }
    auto const wanted = [](FollowerPtr const& follower) {
      return !follower->is_dropped &&
             (follower->stage == Follower::Stage::wants_image || follower->stage == Follower::Stage::wants_step);
    };
    if (std::ranges::none_of(followers_, wanted)) co_await changed_.wait_until(http::TimePoint::max());
  }
}

std::optional<Problem> ShardHost::settle_nonfinite(Push const& push) {
  if (spec_.nonfinite == NonFinite::accept || push.kind == PushKind::clients || role_ != Role::owner)
    return std::nullopt;
  auto const gradient = gradient_of(push);
  auto const found = count_nonfinite(push.dtype, gradient.bytes);
  if (found == 0) return std::nullopt;
  if (tools_.events.nonfinite) tools_.events.nonfinite(found);
  if (spec_.nonfinite == NonFinite::reject)
    return Problem(ProblemCode::non_finite,
                   std::to_string(found) + " elements for " + title() + " are NaN or infinite");
  // The block was made for this push, and nobody else has seen it yet.
  auto* const bytes = const_cast<std::byte*>(gradient.bytes.data());
  zero_nonfinite(push.dtype, {bytes, gradient.bytes.size()});
  return std::nullopt;
}

asio::awaitable<void> ShardHost::serve(JobPtr job) {
  if (auto problem = settle_nonfinite(job->push)) {
    finish(*job, std::move(*problem));
    co_return;
  }
  // Whoever is told that there is no memory must not find later that the backups have applied it.
  if (auto const tried = shard_->prepare(job->push); !tried && job->push.kind != PushKind::clients) {
    finish(*job, to_problem(tried.error()));
    co_return;
  }
  LogEntry entry{shard_->position(), job->push};
  auto const sent = co_await replicate(entry);
  if (!sent) {
    finish(*job, closed_ ? *closed_ : misdirected());
    co_return;
  }
  if (auto problem = co_await apply(job->push)) {
    finish(*job, std::move(*problem));
    co_return;
  }
  for (auto const& follower : followers_)
    if (follower->stage == Follower::Stage::filling || follower->stage == Follower::Stage::wants_step)
      follower->backlog.push_back(entry);
  api::PushAnswer const answer{shard_->version(), epoch_, shard_->window().next_sequence(job->push.client), false};
  if (logging_) log(std::move(entry));
  answer_when_durable(job, answer);
}

// True: every backup that is in step has it, and this is still the owner (or a backup, which has none).
asio::awaitable<bool> ShardHost::replicate(LogEntry entry) {
  constexpr std::chrono::seconds patience{5};
  constexpr std::chrono::milliseconds before_repeating{20};
  auto const role = role_;
  for (auto const& present = followers_; !closed_ && role_ == role;) {
    // Of a placement that may have changed during the last wait.
    auto const behind = std::ranges::find_if(present, [&](FollowerPtr const& follower) {
      return follower->stage == Follower::Stage::in_step && follower->sent_position != entry.position;
    });
    if (behind == present.end()) co_return true;
    auto const follower = *behind;
    auto const epoch = epoch_;
    auto const sent = co_await follower->send(entry, steady_clock::now() + patience);
    if (sent == Follower::Sent::taken) {
      follower->sent_position = entry.position;
      continue;
    }
    // It may have heard of an epoch of this owner's that had not begun when the push was sent.
    if (sent == Follower::Sent::fenced && epoch != epoch_) continue;
    if (sent == Follower::Sent::fenced && !follower->is_dropped) {
      step_down();
      co_return false;
    }
    if (follower->is_dropped) continue;
    if (tools_.events.unreachable) tools_.events.unreachable(follower->peer().worker, follower->peer().incarnation);
    co_await pause(before_repeating);
  }
  co_return false;
}

asio::awaitable<Status> ShardHost::compute(Shard::Change* change) {
  auto const on_gpu = shard_->gpu() != nullptr;
  if (change->bytes() <= inline_bytes && !on_gpu) co_return change->compute_all();
  is_writing_ = change->is_in_place();
  uses_device_ = on_gpu;
  auto computed =
      co_await asio::co_spawn(tools_.threads, compute_there(change, &tools_.threads), http::until_done_there());
  uses_device_ = false;
  is_writing_ = false;
  co_return computed;
}

// A problem: the device has failed.
asio::awaitable<std::optional<Problem>> ShardHost::apply(Push push) {
  constexpr std::chrono::milliseconds before_repeating{10};
  for (;;) {
    while (uses_device_) co_await changed_.wait_until(http::TimePoint::max());
    auto change = shard_->prepare(push);
    auto computed = change ? ok() : Status(change.error());
    if (change) computed = co_await compute(&*change);
    if (computed) {
      auto const rows_before = shard_->rows().value_or(0);
      shard_->finish(std::move(*change));
      auto const created = shard_->rows().value_or(0) - rows_before;
      if (created > 0 && role_ == Role::owner && tools_.events.rows_created) tools_.events.rows_created(created);
      co_return std::nullopt;
    }
    // Memory is waited for: nothing has been changed yet. A value that was written in part is written again.
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
  if (closed_ || role_ != Role::owner || is_writing_ || !shard_->values()) return std::nullopt;
  return View{shard_->values(), shard_->version(), epoch_};
}

asio::awaitable<http::Checked<ShardHost::View>> ShardHost::view(Wish wish, http::TimePoint deadline) {
  auto const self = shared_from_this();
  // The shard may be another one after each wait.
  for (bool has_waited = false;; has_waited = true) {
    if (closed_) co_return *closed_;
    if (role_ != Role::owner) co_return misdirected();
    auto const is_open = !wish.clock || shard_->clocks().is_open(*wish.clock);
    auto const is_new = !wish.min_version || shard_->version() >= *wish.min_version;
    if (is_open && is_new && !is_writing_) {
      if (shard_->values()) break;
      if (auto problem = co_await download(deadline)) co_return std::move(*problem);
      continue;
    }
    if (steady_clock::now() >= deadline) {
      auto const why = is_open ? "version " + std::to_string(wish.min_version.value_or(0)) + " was asked for, " +
                                     std::to_string(shard_->version()) + " is the newest"
                               : shard_->why_clock_waits(*wish.clock);
      co_return Problem(ProblemCode::deadline_exceeded, title() + ": " + why);
    }
    if (!has_waited && !is_writing_ && tools_.events.waited) tools_.events.waited("pull");
    co_await changed_.wait_until(deadline);
  }
  auto const& clocks = shard_->clocks();
  if (wish.clock && clocks.count() && tools_.events.read_behind)
    tools_.events.read_behind(*wish.clock - std::min(*wish.clock, clocks.slowest()));
  co_return View{shard_->values(), shard_->version(), epoch_};
}

}  // namespace chorus::parameters
