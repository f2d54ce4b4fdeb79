#include "server/coordinator/cluster/link_probes.hpp"

#include <algorithm>

#include "base/logging/log.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> rounds_of_pairs(std::uint32_t count) {
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> rounds;
  if (count < 2) return rounds;
  // One number stays and meets all others, which rotate. With an odd count, the number that would meet the missing one
  // rests.
  auto const turning = count - 1 + count % 2;
  for (std::uint32_t round = 0; round < turning; ++round) {
    auto& pairs = rounds.emplace_back();
    auto const add = [&](std::uint32_t a, std::uint32_t b) {
      if (a < count && b < count) pairs.emplace_back(std::min(a, b), std::max(a, b));
    };
    add(turning, round);
    for (std::uint32_t step = 1; step <= turning / 2; ++step)
      add((round + step) % turning, (round + turning - step) % turning);
  }
  return rounds;
}

struct LinkProbes::Round {
  std::size_t pending = 0, measured = 0, failed = 0;
};

// One pair of a round; its destruction ends the wait for the pair, however its task ends.
class LinkProbes::Asked {
 public:
  Asked(std::shared_ptr<Round> round, http::Condition& changed) : round_(std::move(round)), changed_(changed) {}
  ~Asked() {
    --round_->pending;
    changed_.notify_all();
  }
  Asked(Asked const&) = delete;
  Asked& operator=(Asked const&) = delete;

 private:
  std::shared_ptr<Round> round_;
  http::Condition& changed_;
};

LinkProbes::LinkProbes(Tools tools, ProbingPatience patience)
    : tools_(std::move(tools)), patience_(patience), changed_(tools_.executor), probes_(tools_.executor) {}

void LinkProbes::cancel() {
  cancelled_ = true;
  probes_.cancel();
  changed_.notify_all();
}

PairLinks LinkProbes::known(std::span<Worker const> workers) const {
  PairLinks pairs;
  for (std::uint32_t a = 0; a < workers.size(); ++a)
    for (auto b = a + 1; b < workers.size(); ++b)
      if (auto const measured = memory_.find(end_of(workers[a]), end_of(workers[b])))
        pairs.push_back({a, b, measured->latency_s, measured->bytes_per_s});
  return pairs;
}

asio::awaitable<void> LinkProbes::measure(std::vector<Worker> workers, std::function<bool()> is_wanted) {
  auto const begun = Clock::now();
  auto const deadline = begun + patience_.all;
  auto const goes_on = [&] { return !cancelled_ && is_wanted() && Clock::now() < deadline; };
  std::vector<std::string> keys;
  for (auto const& worker : workers) keys.push_back(worker.id);
  auto const ticket = busy_.enter(std::move(keys));
  while (!busy_.holds(ticket) && goes_on()) co_await changed_.wait_until(deadline);
  auto const asked = std::make_shared<Round>();
  for (auto const& pairs : rounds_of_pairs(static_cast<std::uint32_t>(workers.size()))) {
    if (!goes_on()) break;
    for (auto const& [a, b] : pairs) {
      if (memory_.find(end_of(workers[a]), end_of(workers[b]))) continue;
      ++asked->pending;
      probes_.spawn("link " + workers[a].id + " - " + workers[b].id,
                    ask(asked, workers[a], workers[b], std::min(deadline, Clock::now() + patience_.pair)));
    }
    while (asked->pending > 0 && goes_on()) co_await changed_.wait_until(deadline);
  }
  busy_.leave(ticket);
  changed_.notify_all();
  if (asked->measured + asked->failed > 0)
    tools_.log.info("links between {} workers: pairs_measured={} pairs_failed={} seconds={:.2f}", workers.size(),
                    asked->measured, asked->failed, std::chrono::duration<double>(Clock::now() - begun).count());
}

asio::awaitable<void> LinkProbes::ask(std::shared_ptr<Round> round, Worker worker, Worker other,
                                      http::TimePoint deadline) {
  Asked const asked(round, changed_);
  api::ProbeRequest to;
  to.worker = other.id;
  to.url = other.url;
  auto const said = co_await tools_.workers.measure(worker.url, std::move(to), deadline);
  std::string why;
  if (said.has_error())
    why = said.error().detail;
  else if (said.value().has_error())
    why = said.value().error().detail;
  if (why.empty()) {
    if (auto const measured = measured_by(said.value().value())) {
      memory_.remember(end_of(worker), end_of(other), *measured);
      ++round->measured;
      co_return;
    }
    why = "it reports what no link can be";
  }
  ++round->failed;
  logging::warn(tools_.log, "link.unmeasured",
                "link " + worker.id + " - " + other.id + " was not measured: " + on_one_line(why),
                {{"worker", worker.id}, {"peer", other.id}});
}

}  // namespace chorus::coordinator
