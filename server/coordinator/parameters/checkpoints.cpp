#include "server/coordinator/parameters/checkpoints.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "server/coordinator/text/identifier.hpp"
#include "server/coordinator/text/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::minutes file_patience{10};     // for one worker's file
constexpr std::chrono::seconds discard_patience{10};  // for its removal

template <class T>
http::Checked<T> said_or_problem(WorkerClient::Said<T> said, std::string const& worker) {
  if (said.has_error())
    return Problem(ProblemCode::worker_unreachable, "worker '" + worker + "': " + said.error().detail);
  if (said.value().has_value()) return std::move(said.value().value());
  auto problem = said.value().error();
  problem.detail = "worker '" + worker + "': " + problem.detail;
  return problem;
}

// For other problems the worker may have committed, or may still commit.
bool is_known_to_be_uncommitted(Problem const& problem) {
  return problem.code != ProblemCode::worker_unreachable && problem.code != ProblemCode::unavailable &&
         problem.code != ProblemCode::deadline_exceeded && problem.code != ProblemCode::already_exists;
}

// Keeps a name while its checkpoint is made, and removes it at the end.
class Making {
 public:
  Making(std::set<std::string>& names, std::string name) : names_(names), name_(std::move(name)) {
    names_.insert(name_);
  }
  ~Making() { names_.erase(name_); }
  Making(Making const&) = delete;
  Making& operator=(Making const&) = delete;

 private:
  std::set<std::string>& names_;
  std::string name_;
};

}  // namespace

struct Checkpoints::Writing {
  explicit Writing(asio::any_io_executor executor) : changed(std::move(executor)) {}
  std::string name;
  std::uint64_t number = 0;
  std::size_t pending = 0;
  std::vector<std::string> parts;
  std::optional<Problem> problem;
  http::Condition changed;
};

Checkpoints::Checkpoints(Tools tools, Schedule schedule)
    : tools_(tools),
      schedule_(std::move(schedule)),
      alignment_(tools.executor, tools.workers),
      tasks_(tools.executor) {}

void Checkpoints::start() {
  if (schedule_.name.empty()) return;
  tools_.metrics.checkpoints_begin(wall_seconds());
  tasks_.spawn("checkpoints", repeat());
}

asio::awaitable<void> Checkpoints::stop() {
  tasks_.cancel();
  co_await tasks_.join();
  co_await alignment_.stop();
}

asio::awaitable<void> Checkpoints::repeat() {
  asio::steady_timer timer(tools_.executor);
  for (;;) {
    timer.expires_after(schedule_.interval);
    co_await timer.async_wait(asio::use_awaitable);
    api::CheckpointRequest request;
    request.name = schedule_.name;
    request.keep = schedule_.keep;
    auto const made = co_await make(std::move(request));
    if (made.has_value()) continue;
    if (made.error().code == ProblemCode::unknown_parameter)
      tools_.metrics.checkpoint_needless(wall_seconds());
    else
      tools_.log.error("checkpoint {}: {}", schedule_.name, on_one_line(made.error().detail));
  }
}

http::Checked<Checkpoints::Plan> Checkpoints::plan_of(std::vector<std::string> const& names) const {
  Plan plan;
  for (auto const& name : names) {
    auto parameter = tools_.directory.find(name);
    if (parameter.has_error()) return parameter.error();
    auto const& why = parameter.value().why;
    if (parameter.value().state == "lost")
      return Problem(ProblemCode::parameter_lost, "parameter " + name + ": " + why.value_or("a shard has no owner"));
    if (parameter.value().state == "unavailable")
      return Problem(ProblemCode::unavailable, "parameter " + name + ": " + why.value_or("a shard has no owner"));
    for (auto const& endpoint : parameter.value().endpoints) {
      if (endpoint.role != "owner") continue;
      auto& owner = plan.owners[endpoint.worker];
      owner.url = endpoint.url;
      owner.shards.push_back({name, endpoint.shard});
    }
    plan.parameters.push_back(std::move(parameter.value()));
  }
  return plan;
}

asio::awaitable<http::Checked<api::CheckpointAnswer>> Checkpoints::make(api::CheckpointRequest request) {
  if (!is_identifier(request.name)) co_return not_an_identifier("checkpoint", request.name, "/name");
  std::vector<std::string> names;
  if (request.parameters)
    names = *request.parameters;
  else
    for (auto const& [name, record] : tools_.directory.all())
      if (record->is_established) names.push_back(name);
  std::ranges::sort(names);
  names.erase(std::ranges::unique(names).begin(), names.end());
  if (names.empty()) co_return Problem(ProblemCode::unknown_parameter, "there is no parameter to be written");
  auto plan = plan_of(names);
  if (plan.has_error()) {
    if (plan.error().code != ProblemCode::unknown_parameter)
      tools_.metrics.checkpoint_ended("failed", 0, wall_seconds());
    co_return plan.error();
  }
  if (in_the_making_.contains(request.name))
    co_return Problem(ProblemCode::busy, "checkpoint " + request.name + " is being made");
  Making const making(in_the_making_, request.name);
  auto const begun = Clock::now();
  auto const made = co_await write(std::move(request), std::move(plan.value()));
  tools_.metrics.checkpoint_ended(made.has_value() ? "succeeded" : "failed",
                                  std::chrono::duration<double>(Clock::now() - begun).count(), wall_seconds());
  co_return made;
}

asio::awaitable<http::Checked<api::CheckpointAnswer>> Checkpoints::write(api::CheckpointRequest request, Plan plan) {
  auto const& owners = plan.owners;
  auto const parameters = plan.parameters.size();
  auto const begun = Clock::now();
  auto const& [first, committer] = *owners.begin();
  auto drawn = co_await tools_.workers.next_checkpoint(committer.url, request.name, begun + file_patience);
  auto number = said_or_problem(std::move(drawn), first);
  if (number.has_error()) co_return number.error();
  // A worker that was given up may still be writing an earlier checkpoint.
  auto& last = last_numbers_[request.name];
  last = std::max(number.value(), last + 1);
  number = last;
  auto const unaligned = co_await alignment_.align(request.name, number.value(), std::move(plan.parameters));
  if (unaligned.has_error()) co_return unaligned.error();
  auto const writing = std::make_shared<Writing>(tools_.executor);
  writing->name = request.name;
  writing->number = number.value();
  writing->pending = owners.size();
  for (auto const& [worker, owner] : owners)
    tasks_.spawn("checkpoint of " + worker, write_file(writing, worker, owner));
  while (writing->pending > 0) co_await writing->changed.wait_until(TimePoint::max());
  if (writing->problem) {
    co_await discard(request.name, writing->number, owners);
    co_return *writing->problem;
  }
  api::CheckpointCommit commit;
  commit.number = writing->number;
  commit.keep = request.keep;
  commit.parts = std::move(writing->parts);
  auto said = co_await tools_.workers.commit_checkpoint(committer.url, request.name, std::move(commit),
                                                        Clock::now() + file_patience);
  auto const committed = said_or_problem(std::move(said), first);
  if (committed.has_error()) {
    if (is_known_to_be_uncommitted(committed.error())) co_await discard(request.name, writing->number, owners);
    co_return committed.error();
  }
  api::CheckpointAnswer answer{request.name,
                               writing->number,
                               parameters,
                               owners.size(),
                               std::chrono::duration<double>(Clock::now() - begun).count(),
                               unaligned.value()};
  tools_.log.info("checkpoint {} number={} parameters={} files={} unaligned={} seconds={:.3f}", answer.name,
                  answer.number, answer.parameters, answer.files, answer.unaligned.size(), answer.seconds);
  co_return answer;
}

// Removes the files on all workers that were told to write. Files that a worker cannot remove now are removed before
// the next checkpoint of this name.
asio::awaitable<void> Checkpoints::discard(std::string name, std::uint64_t number,
                                           std::map<std::string, Owner> owners) {
  auto const writing = std::make_shared<Writing>(tools_.executor);
  writing->name = std::move(name);
  writing->number = number;
  writing->pending = owners.size();
  for (auto const& [worker, owner] : owners)
    tasks_.spawn("no checkpoint of " + worker, discard_file(writing, worker, owner.url));
  while (writing->pending > 0) co_await writing->changed.wait_until(TimePoint::max());
}

asio::awaitable<void> Checkpoints::discard_file(std::shared_ptr<Writing> writing, std::string worker, std::string url) {
  auto said = co_await tools_.workers.discard_checkpoint(std::move(url), writing->name, writing->number,
                                                         Clock::now() + discard_patience);
  auto const discarded = said_or_problem(std::move(said), worker);
  if (discarded.has_error())
    tools_.log.warn("checkpoint {} number={} came to nothing, and its files are not removed yet: {}", writing->name,
                    writing->number, on_one_line(discarded.error().detail));
  --writing->pending;
  writing->changed.notify_all();
}

asio::awaitable<void> Checkpoints::write_file(std::shared_ptr<Writing> writing, std::string worker, Owner owner) {
  api::CheckpointFile file;
  file.number = writing->number;
  file.shards = std::move(owner.shards);
  auto said =
      co_await tools_.workers.write_checkpoint(owner.url, writing->name, std::move(file), Clock::now() + file_patience);
  auto part = said_or_problem(std::move(said), worker);
  if (part.has_error())
    writing->problem = part.error();
  else
    writing->parts.push_back(std::move(part.value()));
  --writing->pending;
  writing->changed.notify_all();
}

}  // namespace chorus::coordinator
