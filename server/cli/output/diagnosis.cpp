#include "server/cli/output/diagnosis.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "server/cli/text/format.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

using Level = Finding::Level;

constexpr double stands_still_s = 2;            // without movement of a worker's run
constexpr double slow_by = 4;                   // compared with the median of links of the same level
constexpr std::size_t links_to_compare = 3;     // minimum per level
constexpr double wait_worth_telling_s = 0.005;  // minimum wait of the others for one rank
constexpr double share_worth_telling = 0.3;     // minimum share of that wait in the time of the collective
constexpr std::size_t late_arrivals = 4;        // of one worker, in the listed collectives

std::string with_decimals(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string seconds_of(std::uint64_t ms) { return with_decimals(static_cast<double>(ms) / 1000, 1) + " s"; }

double median(std::vector<double> values) {
  auto const middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::string subject_of(api::VerdictReason const& reason) {
  if (reason.parameter) return "parameter " + *reason.parameter;
  if (reason.collective) return "collective " + *reason.collective;
  if (reason.group) return "group " + *reason.group;
  return reason.worker ? "worker " + *reason.worker : "coordinator";
}

class Diagnosis {
 public:
  explicit Diagnosis(ClusterFacts const& facts) : facts_(facts) {}

  std::vector<Finding> make() {
    look_at_coordinator();
    for (auto const& worker : facts_.workers) look_at(worker);
    look_at_versions();
    for (auto const& group : facts_.groups) look_at(group);
    for (auto const& collective : facts_.collectives) look_at(collective);
    look_at_links();
    look_for_stragglers();
    look_at_verdict();
    findings_.insert(findings_.end(), notes_.begin(), notes_.end());
    return std::move(findings_);
  }

 private:
  void problem(std::string about, std::string what, std::string advice) {
    findings_.push_back({Level::problem, std::move(about), std::move(what), std::move(advice)});
  }
  void note(std::string about, std::string what, std::string advice) {
    notes_.push_back({Level::note, std::move(about), std::move(what), std::move(advice)});
  }

  void look_at_coordinator() {
    auto const& [why_not, complaint] = facts_.readiness;
    if (!why_not.empty())
      problem("coordinator", "it is not ready: " + why_not, "launches are refused until it is; its log says more");
    if (!complaint.empty()) problem("coordinator", complaint, "what runs goes on; its log says more");
    if (facts_.workers.empty())
      problem("coordinator", "no worker has joined",
              "start workers with --coordinator and the URL that was asked here");
  }

  void look_at(WorkerFacts const& facts) {
    auto const& worker = facts.worker;
    auto const about = "worker " + worker.id;
    if (worker.state != "ready") {
      problem(about, "it is lost, and was last heard of " + seconds_of(worker.heard_ms_ago) + " ago",
              facts.unreachable.empty() ? "its process answers: look in its log why it does not join again"
                                        : "look whether its process and its host run; it joins again by itself");
    } else if (worker.lease_ms > 0 && worker.heard_ms_ago > worker.lease_ms * 2 / 3) {
      problem(about,
              "it is late with its lease: last heard of " + seconds_of(worker.heard_ms_ago) + " ago, lost after " +
                  seconds_of(worker.lease_ms),
              "it is stopped, overloaded, or cut off from the coordinator");
    }
    if (worker.takeovers >= api::takeovers_of_a_contest)
      problem(
          about,
          "its name changed hands " + std::to_string(worker.takeovers) +
              " times within a minute: processes take it from each other, at " + join(worker.rivals, ", "),
          "two supervisors start a worker of this name, or it is restarted before it has ended: stop one of them, or "
          "give it another --id");
    look_at_address(facts, about);
    auto const& [why_not, complaint] = facts.readiness;
    if (facts.unreachable.empty() && !why_not.empty() && worker.state == "ready")
      problem(about, "it is not ready: " + why_not, "it takes nothing new until that is over; its log says more");
    if (!complaint.empty())
      note(about, complaint, "it works, more slowly: the runbook ChorusSharedMemoryLacking says what to look at");
    if (facts.unreachable.empty()) look_at_runs(facts, about);
  }

  void look_at_address(WorkerFacts const& facts, std::string const& about) {
    auto const& url = facts.worker.url;
    bool const for_us = facts.unreachable.empty(), for_coordinator = facts.by_coordinator.reachable;
    if (for_us && for_coordinator) return;
    if (!for_us && !for_coordinator)
      problem(about,
              "nobody answers at its address " + url + ": " + facts.by_coordinator.detail.value_or(facts.unreachable),
              "it is stopped, gone, or gave an address that is not its own (--advertise)");
    else if (for_us)
      problem(about, "the coordinator does not reach it at " + url + ": " + facts.by_coordinator.detail.value_or(""),
              "look at the network between the two; collectives with it will fail");
    else
      note(about, "it is not reached at " + url + " from here, though the coordinator does: " + facts.unreachable,
           "fine if workers are in a network of their own; otherwise --advertise an address that clients know");
  }

  // Runs of launched collectives are reported with the collective.
  void look_at_runs(WorkerFacts const& facts, std::string const& about) {
    for (auto const& run : facts.runs) {
      bool const is_call = !run.run.empty() && run.run.front() >= '8';
      if (!is_call || run.still_seconds < stands_still_s) continue;
      std::string waits;
      for (auto const& one : run.waiting_for)
        waits += (waits.empty() ? ": waits for rank " : ", rank ") + std::to_string(one.rank) + " (" + one.worker +
                 ")" +
                 (one.suspicion == "silent"       ? ", which is silent"
                  : one.suspicion == "not_called" ? ", which has not called"
                                                  : "");
      problem(about,
              "its call in group " + run.group + " (" + run.description + ") has not moved for " +
                  with_decimals(run.still_seconds, 1) + " s" + waits,
              "look at those it waits for");
    }
  }

  void look_at_versions() {
    std::map<std::string, std::vector<std::string>> workers;
    for (auto const& facts : facts_.workers)
      if (facts.worker.state == "ready") workers[facts.worker.version].push_back(facts.worker.id);
    for (auto const& [version, ids] : workers)
      if (version != facts_.version)
        problem(
            "version",
            join(ids, ", ") + (ids.size() == 1 ? " runs " : " run ") + version + ", the coordinator " + facts_.version,
            "run one version everywhere: plans of two may differ, and then runs are refused");
  }

  void look_at(api::Group const& group) {
    auto const about = "group " + group.name;
    std::set<std::string> members;
    for (auto const& member : group.members) members.insert(member.worker);
    std::vector<std::string> missing;
    if (group.requested.workers)
      for (auto const& id : *group.requested.workers)
        if (!members.contains(id)) missing.push_back(id);
    auto const wished = group.requested.workers
                            ? group.requested.workers->size()
                            : group.requested.size.value_or(static_cast<std::uint32_t>(members.size()));
    if (!group.lost.empty())
      problem(about, "it is degraded: it has lost " + join(group.lost, ", "),
              group.requested.on_failure == "shrink" ? "it goes on when enough workers are ready"
                                                     : "PUT it again with those that are left, or when they are back");
    else if (group.state != "ready")
      problem(about, "it is " + group.state, "PUT it again");
    if (members.size() < wished)
      problem(about,
              "it has " + std::to_string(members.size()) + " of the " + std::to_string(wished) + " members asked for" +
                  (missing.empty() ? std::string() : "; not there: " + join(missing, ", ")),
              "start those that did not join; the group takes them in when they are ready");
  }

  void look_at(api::Collective const& collective) {
    auto const about = "collective " + collective.id;
    if (!has_ended(collective) && collective.stalled) {
      auto const& stall = *collective.stalled;
      problem(about, "in group " + collective.request.group + " " + stall.text,
              "look at the workers named; it fails at its deadline, " + seconds_of(collective.timeout_ms) +
                  " after its launch");
    }
    bool const is_newest_ended = !ended_seen_ && has_ended(collective);
    ended_seen_ = ended_seen_ || has_ended(collective);
    // A stall that ended in failure during the check is reported, too.
    if (is_newest_ended && collective.state == "failed" && collective.error)
      note(about,
           "the last one failed: " + collective.error->detail +
               (collective.stalled ? "; before that " + collective.stalled->text : std::string()),
           "the problem's page says what to do: /problems/" + std::string(http::kind(collective.error->code).name));
  }

  void look_at_links() {
    std::map<std::string, std::vector<api::MeasuredLink>> levels;
    for (auto const& link : facts_.links) levels[link.level].push_back(link);
    for (auto const& [level, links] : levels) {
      if (links.size() < links_to_compare) continue;
      std::vector<double> speeds, latencies;
      for (auto const& link : links) {
        speeds.push_back(link.bytes_per_s);
        latencies.push_back(link.latency_s);
      }
      auto const usual_speed = median(speeds), usual_latency = median(latencies);
      for (auto const& link : links) {
        auto const about = "link " + link.from + " - " + link.to;
        if (link.bytes_per_s * slow_by < usual_speed)
          problem(about,
                  "it carries " + with_decimals(link.bytes_per_s / 1e9, 2) + " GB/s, links of its level (" + level +
                      ") " + with_decimals(usual_speed / 1e9, 2),
                  "look at the two hosts' network; groups without one of them avoid it");
        else if (link.latency_s > usual_latency * slow_by && link.latency_s > 1e-3)
          problem(about,
                  "its latency is " + with_decimals(link.latency_s * 1e3, 1) + " ms, of links of its level (" + level +
                      ") " + with_decimals(usual_latency * 1e3, 1),
                  "look at the two hosts' network");
      }
    }
  }

  // The last rank to arrive waits for no other, and the others wait for it.
  void look_for_stragglers() {
    std::map<std::string, std::size_t> late;
    for (auto const& collective : facts_.collectives) {
      if (collective.state != "succeeded" || collective.ranks.size() < 2) continue;
      std::vector<double> waits;
      api::RankRecord const* last = nullptr;
      for (auto const& rank : collective.ranks) {
        if (!rank.report) continue;
        waits.push_back(rank.report->wait_seconds);
        if (last == nullptr || rank.report->wait_seconds < last->report->wait_seconds) last = &rank;
      }
      if (waits.size() < 2) continue;
      auto const others = median(waits) - last->report->wait_seconds;
      if (others > wait_worth_telling_s && others > collective.seconds * share_worth_telling) ++late[last->worker];
    }
    for (auto const& [worker, times] : late)
      if (times >= late_arrivals)
        problem("worker " + worker,
                "the others waited for it in " + std::to_string(times) + " of the last " +
                    format_count(facts_.collectives.size(), "collective"),
                "it is slower than its peers: look at its host's load, or leave it out");
  }

  [[nodiscard]] bool is_told(std::string const& about) const {
    auto const is_about = [&](auto const& findings) {
      return std::ranges::find(findings, about, &Finding::about) != findings.end();
    };
    return is_about(findings_) || is_about(notes_);
  }

  // What the coordinator says of things about which nothing is found here.
  void look_at_verdict() {
    std::vector<std::pair<std::string, api::VerdictReason const*>> news;
    for (auto const& reason : facts_.verdict.reasons) {
      auto const about = subject_of(reason);
      // Different versions are the only other defect of the whole cluster.
      if (!is_told(about) && !(about == "coordinator" && is_told("version"))) news.emplace_back(about, &reason);
    }
    for (auto const& [about, reason] : news) {
      auto const advice = reason->parameter ? "GET /v1/parameters/" + *reason->parameter +
                                                  " shows its shards; the guide of parameters says how it goes on"
                                            : std::string("chorus status and the status page show it, too");
      if (reason->level == "red")
        problem(about, reason->text, advice);
      else
        note(about, reason->text, advice);
    }
  }

  ClusterFacts const& facts_;
  std::vector<Finding> findings_, notes_;
  bool ended_seen_ = false;
};

}  // namespace

std::vector<Finding> diagnose(ClusterFacts const& facts) { return Diagnosis(facts).make(); }

}  // namespace chorus::cli
