#include "server/coordinator/diagnosis/verdict.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>

namespace chorus::coordinator {
namespace {

constexpr std::size_t names_in_a_sentence = 3;

std::string join(std::vector<std::string> const& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), names_in_a_sentence); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > names_in_a_sentence)
    text += " and " + std::to_string(names.size() - names_in_a_sentence) + " more";
  return text;
}

std::string count(std::size_t n, std::string const& thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

std::string seconds_ago(std::uint64_t ms) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s ago", static_cast<double>(ms) / 1000);
  return text.data();
}

bool is_lost(api::Worker const& worker) { return worker.state != "ready"; }
bool is_late(api::Worker const& worker) { return !is_lost(worker) && worker.heard_ms_ago * 2 > worker.lease_ms; }
bool is_degraded(std::shared_ptr<api::Group const> const& group) { return group->state != "ready"; }
bool has_failed(api::Collective const& one) { return one.state == "failed"; }
bool is_under_way(api::Collective const& one) {
  return one.state != "succeeded" && one.state != "cancelled" && !has_failed(one);
}

// Names like "3 (w3)" of the ranks that have not ended while others have: the run waits for them.
std::vector<std::string> awaited_ranks(api::Collective const& one) {
  std::vector<std::string> awaited;
  for (auto const& rank : one.ranks)
    if (rank.state != "succeeded") awaited.push_back(std::to_string(rank.rank) + " (" + rank.worker + ")");
  if (awaited.size() == one.ranks.size()) awaited.clear();
  return awaited;
}

bool is_stalled(api::Collective const& one) { return is_under_way(one) && one.stalled.has_value(); }

// The ranks for which the stall inspector found that the others wait.
std::vector<std::string> waited_for(api::Stall const& stall) {
  std::vector<std::string> names;
  for (auto const& rank : stall.ranks)
    if (std::ranges::find(stall.waiting_for, rank.rank) != stall.waiting_for.end())
      names.push_back(std::to_string(rank.rank) + " (" + rank.worker + ")");
  return names;
}

class Judge {
 public:
  explicit Judge(Facts const& facts) : facts_(facts) {}

  api::Verdict verdict() {
    look_at_service();
    look_at_workers();
    look_at_groups();
    look_at_parameters();
    look_at_collectives();
    verdict_.level = verdict_.reasons.empty() ? "green" : verdict_.reasons.front().level;
    verdict_.text = sentence();
    return std::move(verdict_);
  }

 private:
  // Red reasons come before amber ones, each in the order in which they were found.
  api::VerdictReason& add(char const* level, std::string text) {
    auto& reasons = verdict_.reasons;
    auto const is_red = level == std::string_view("red");
    auto const at = is_red ? std::ranges::find(reasons, "amber", &api::VerdictReason::level) : reasons.end();
    auto& reason = *reasons.emplace(at);
    reason.level = level;
    reason.text = std::move(text);
    return reason;
  }

  void look_at_service() {
    if (facts_.journal_failure) add("red", "nothing can be launched: " + *facts_.journal_failure);
    if (facts_.is_unprotected)
      add("amber",
          "whoever reaches this address may do everything: the coordinator was started with --insecure-no-auth");
    if (facts_.draining) add("amber", "the coordinator is stopping, and launches nothing new");
    if (facts_.workers.empty()) add("amber", "no worker has joined yet");
    std::set<std::string> versions;
    for (auto const& worker : facts_.workers)
      if (!is_lost(worker)) versions.insert(worker.version);
    if (versions.size() > 1) add("amber", "workers of different versions: " + join({versions.begin(), versions.end()}));
  }

  void look_at_workers() {
    for (auto const& worker : facts_.workers) {
      auto const heard = "last heard " + seconds_ago(worker.heard_ms_ago);
      if (is_lost(worker)) add("amber", "worker " + worker.id + " is lost, " + heard).worker = worker.id;
      if (is_late(worker)) add("amber", "worker " + worker.id + " is late, " + heard).worker = worker.id;
      if (worker.takeovers >= api::takeovers_of_a_contest)
        add("amber", "worker " + worker.id + " changed hands " + std::to_string(worker.takeovers) +
                         " times within a minute: processes take the name from each other, at " + join(worker.rivals))
            .worker = worker.id;
    }
  }

  void look_at_groups() {
    for (auto const& one : facts_.groups) {
      auto const& group = *one;
      if (is_degraded(one)) {
        auto const why = group.lost.empty() ? "not all members took its last epoch" : "it has lost " + join(group.lost);
        add("red", "group " + group.name + " is degraded: " + why + "; PUT it again to go on").group = group.name;
        continue;
      }
      auto const wished = group.requested.workers ? group.requested.workers->size() : group.requested.size.value_or(0);
      if (group.members.size() < wished)
        add("amber", "group " + group.name + " goes on with " + std::to_string(group.members.size()) + " of " +
                         std::to_string(wished) + " workers")
            .group = group.name;
    }
  }

  void look_at_parameters() {
    for (auto const& one : facts_.parameters) {
      auto const why = one.why ? ": " + *one.why : std::string();
      if (one.state == "lost") add("red", "parameter " + one.name + " is lost" + why).parameter = one.name;
      if (one.state == "unavailable")
        add("red", "parameter " + one.name + " is unavailable" + why).parameter = one.name;
      if (one.state == "degraded")
        add("amber", "parameter " + one.name + " has fewer replicas than asked for").parameter = one.name;
    }
  }

  void look_at_collectives() {
    std::map<std::string, api::Collective const*> last_ended;
    for (auto const& one : facts_.collectives) {
      if (!is_under_way(one)) {
        last_ended.emplace(one.request.group, &one);
        continue;
      }
      auto const awaited = awaited_ranks(one);
      if (!one.stalled && awaited.empty()) continue;
      auto& reason =
          add("amber", "collective " + one.id +
                           (one.stalled ? " is stalled: " + one.stalled->text : " waits for rank " + join(awaited)));
      reason.collective = one.id;
      reason.group = one.request.group;
    }
    for (auto const& [group, one] : last_ended) {
      if (!has_failed(*one)) continue;
      auto& reason = add("amber", "the last collective in group " + group + " failed: " +
                                      (one->error ? one->error->detail : std::string("without a reason")));
      reason.collective = one->id;
      reason.group = group;
    }
  }

  [[nodiscard]] std::string sentence() const {
    if (facts_.workers.empty()) return "Waiting for the first worker to join";
    std::vector<std::string> lost, late;
    for (auto const& worker : facts_.workers) {
      auto const heard = worker.id + ", last heard " + seconds_ago(worker.heard_ms_ago);
      if (is_lost(worker)) lost.push_back(heard);
      if (is_late(worker)) late.push_back(heard);
    }
    auto const all = facts_.workers.size();
    auto text = std::to_string(all - lost.size()) + " of " + count(all, "worker") + " ready";
    if (!lost.empty()) text += "; waiting for " + join(lost);
    if (!late.empty()) text += "; late: " + join(late);
    auto const degraded = static_cast<std::size_t>(std::ranges::count_if(facts_.groups, is_degraded));
    text += "; " + count(facts_.groups.size(), "group");
    if (degraded > 0) text += " (" + std::to_string(degraded) + " degraded)";
    auto const running = static_cast<std::size_t>(std::ranges::count_if(facts_.collectives, is_under_way));
    text += "; " + count(running, "collective") + " running";
    std::vector<std::string> stalled;
    for (auto const& one : facts_.collectives)
      if (is_stalled(one)) stalled.push_back(one.id + " waits for rank " + join(waited_for(*one.stalled)));
    if (!stalled.empty()) text += ", " + std::to_string(stalled.size()) + " stalled: " + join(stalled);
    return text;
  }

  Facts const& facts_;
  api::Verdict verdict_;
};

}  // namespace

api::Verdict judge(Facts const& facts) { return Judge(facts).verdict(); }

api::Verdict verdict_for_strangers() {
  api::Verdict verdict;
  verdict.level = "amber";
  verdict.text = "This coordinator says how things stand only to those who have a token of the role read";
  verdict.reasons.emplace_back().level = "amber";
  verdict.reasons.back().text =
      "enter one where the page asks for it, send it as 'Authorization: Bearer TOKEN', or give it to `chorus status "
      "--token-file`; whoever "
      "runs the coordinator makes one with `chorus token create --role read`";
  return verdict;
}

}  // namespace chorus::coordinator
