// check: tests the cluster from here. Puts a small tensor on ready workers, runs an all_reduce, compares every bit of
// every rank's result, and removes everything again.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <ostream>
#include <random>

#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/json/json.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/commands/waiting.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/text/format.hpp"

namespace chorus::cli {
namespace {

constexpr std::size_t elements = 1000;
constexpr std::uint32_t ranks_max = 1000;

struct CheckOptions {
  std::uint32_t ranks = 2;
  std::chrono::milliseconds timeout{30'000};
};

// Rank r contributes (r + 1) * (i + 1): integers, so that the right answer is exact.
std::string contribution(std::uint64_t factor) {
  std::vector<std::int64_t> values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<std::int64_t>(factor * (i + 1));
  return {reinterpret_cast<char const*>(values.data()), values.size() * sizeof(values[0])};
}

std::string sum_over(std::uint64_t ranks) { return contribution(ranks * (ranks + 1) / 2); }

// Holds the signals that end the program, until one is taken: what the check has made is removed first. A second signal
// ends the program at once.
class Interruption {
 public:
  Interruption() {
    ::sigemptyset(&ending_);
    for (auto const number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction before {};
      ::sigaction(number, nullptr, &before);
      if (before.sa_handler != SIG_IGN) ::sigaddset(&ending_, number);
    }
    ::sigprocmask(SIG_BLOCK, &ending_, &before_);
  }
  ~Interruption() {
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    if (taken_ > 0) ::raise(taken_);
  }
  Interruption(Interruption const&) = delete;
  Interruption& operator=(Interruption const&) = delete;

  bool has_come() {
    timespec const at_once{};
    if (taken_ <= 0) taken_ = ::sigtimedwait(&ending_, nullptr, &at_once);
    if (taken_ > 0) ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    return taken_ > 0;
  }

 private:
  sigset_t ending_{}, before_{};
  int taken_ = -1;
};

// Ends the collective and removes the group and the tensors, however the check ends. Failures of this are ignored.
class Traces {
 public:
  explicit Traces(Session const& session) : session_(session) {}
  ~Traces() {
    // The tensors of a collective that runs cannot be removed.
    if (!collective_.empty()) static_cast<void>(Client(session_).send({.method = "DELETE", .path = collective_}));
    for (auto const& [url, path] : tensors_)
      static_cast<void>(Client(session_, url, "a worker").send({.method = "DELETE", .path = path}));
    if (!group_.empty()) static_cast<void>(Client(session_).send({.method = "DELETE", .path = group_}));
  }
  Traces(Traces const&) = delete;
  Traces& operator=(Traces const&) = delete;

  void group(std::string path) { group_ = std::move(path); }
  void collective(std::string path) { collective_ = std::move(path); }
  void tensor(std::string url, std::string path) { tensors_.emplace_back(std::move(url), std::move(path)); }

 private:
  Session const& session_;
  std::string group_;
  std::string collective_;
  std::vector<std::pair<std::string, std::string>> tensors_;
};

std::string unused_name() {
  std::random_device random;
  return "check-" + std::to_string(random()) + "-" + std::to_string(random());
}

Client worker_of(Session const& session, api::Member const& member) {
  return {session, member.url, "worker '" + member.worker + "'"};
}

Failure wrong(api::Member const& member, std::string const& what) {
  return {.problem = {http::ProblemCode::internal, "rank " + std::to_string(member.rank) + " (worker '" +
                                                       member.worker + "' at " + member.url + ") " + what}};
}

// Ends early at an interruption.
std::optional<Failure> put_tensors(Session const& session, api::Group const& group, std::string const& path,
                                   Traces& traces, Interruption& interruption) {
  for (auto const& member : group.members) {
    if (interruption.has_come()) break;
    auto const put = worker_of(session, member)
                         .send({.method = "PUT",
                                .path = path,
                                .body = contribution(member.rank + 1),
                                .content_type = "application/octet-stream",
                                .fields = {{"Tensor-Dtype", "i64"}, {"Tensor-Shape", std::to_string(elements)}}});
    if (put || put.error().may_be_done) traces.tensor(member.url, path);
    if (!put) return put.error();
  }
  return std::nullopt;
}

std::optional<Failure> compare_results(Session const& session, api::Group const& group, std::string const& path) {
  auto const right = sum_over(group.members.size());
  for (auto const& member : group.members) {
    auto const got = worker_of(session, member).send({.path = path});
    if (!got) return got.error();
    if (*got != right) return wrong(member, "does not hold the sum, bit for bit");
  }
  return std::nullopt;
}

// Launches the collective, and waits for its end so long, or until an interruption. Every request is the same.
Reply<api::Collective> run_to_the_end(Client const& coordinator, std::string const& path, std::string const& body,
                                      std::chrono::milliseconds wait, Interruption& interruption) {
  constexpr std::chrono::milliseconds part_max{1000};
  for (auto left = wait;; left -= part_max) {
    auto const part = std::min(left, part_max);
    auto run = coordinator.ask<api::Collective>({.method = "PUT",
                                                 .path = path + "?wait=" + std::to_string(part.count()) + "ms",
                                                 .body = body,
                                                 .patience = part + answer_slack,
                                                 .repeatable = true});
    if (!run || has_ended(*run) || left <= part_max || interruption.has_come()) return run;
  }
}

http::Problem not_ended(api::Collective const& run, std::chrono::milliseconds wait) {
  return {http::ProblemCode::deadline_exceeded, "the all_reduce is still " + run.state + " after " +
                                                    format_seconds(std::chrono::duration<double>(wait).count())};
}

ExitCode check(CheckOptions const& options, Session const& session) {
  Client const coordinator(session);
  Interruption interruption;
  Traces traces(session);
  auto const name = unused_name();
  auto const group_path = "/v1/groups/" + name, tensor_path = "/v1/tensors/" + name;
  api::GroupRequest wish;
  wish.size = options.ranks;
  auto const group = coordinator.ask<api::Group>({.method = "PUT",
                                                  .path = group_path,
                                                  .body = http::encode(wish),
                                                  .fields = {{"Idempotency-Key", draw_key()}},
                                                  .repeatable = true});
  if (group || group.error().may_be_done) traces.group(group_path);
  if (!group) return report(session, group.error());
  if (auto const failure = put_tensors(session, *group, tensor_path, traces, interruption))
    return report(session, *failure);

  api::CollectiveRequest request;
  request.group = name;
  request.tensor = name;
  request.op = "all_reduce";
  request.timeout_ms = static_cast<std::uint32_t>(options.timeout.count());
  auto const wait = wait_for_the_end(options.timeout);
  if (interruption.has_come()) return ExitCode::failed;
  auto const collective_path = "/v1/collectives/" + name;
  traces.collective(collective_path);
  auto const run = run_to_the_end(coordinator, collective_path, http::encode(request), wait, interruption);
  if (run && has_ended(*run)) traces.collective("");
  if (interruption.has_come()) return ExitCode::failed;
  if (!run) return report(session, run.error());
  if (run->error) return report(session, *run->error);
  if (run->state != "succeeded") return report(session, not_ended(*run, wait));
  if (auto const failure = compare_results(session, *group, tensor_path)) return report(session, *failure);
  if (session.json)
    session.out << "{\"ranks\":" << group->members.size() << ",\"elements\":" << elements << ",\"correct\":true}\n";
  else
    session.out << "all_reduce over " << format_count(group->members.size(), "rank") << " (" << run->algorithm
                << "): every rank holds the sum, bit for bit\n";
  return ExitCode::ok;
}

}  // namespace

void add_check(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("check", "Run a small all_reduce and compare every bit of every rank's result");
  auto const options = std::make_shared<CheckOptions>();
  add_number(command, "--ranks", options->ranks, 1, ranks_max, "over how many of the ready workers (2)");
  add_duration(command, "--timeout", options->timeout, "how long the all_reduce may take (30s)");
  commands.bind(command, [options](Session const& session) { return check(*options, session); });
}

}  // namespace chorus::cli
