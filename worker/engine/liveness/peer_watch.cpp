#include "worker/engine/liveness/peer_watch.hpp"

#include <algorithm>
#include <utility>

#include "worker/engine/transport/run_on_links.hpp"

namespace chorus::engine {
namespace {

constexpr std::chrono::seconds moment{1};  // enough for a preempted thread to go on

}  // namespace

PeerWatch::PeerWatch(RunSpec const& spec, Sends const& sends, Receives const& receives,
                     std::chrono::milliseconds inquiry, std::chrono::milliseconds silence, TimePoint started)
    : spec_(spec),
      sends_(sends),
      receives_(receives),
      inquiry_(inquiry),
      silence_(silence),
      started_(started),
      until_inquiry_(first_inquiry()),
      next_inquiry_(started + until_inquiry_),
      heard_(spec.members.size()) {}

void PeerWatch::begin(TimePoint now) {
  started_ = now;
  until_inquiry_ = first_inquiry();
  next_inquiry_ = now + until_inquiry_;
  in_grace_ = false;
}

void PeerWatch::forget() {
  std::fill(heard_.begin(), heard_.end(), false);
  failure_detector_.reset();
}

PeerWatch::TimePoint PeerWatch::next_deadline() const {
  return std::min(in_grace_ ? spec_.deadline + grace : spec_.deadline, next_inquiry_);
}

std::vector<PeerWatch::Wait> PeerWatch::waits() const {
  std::vector<Wait> waits;
  auto const add = [&waits](auto const& channel) {
    if (!channel.waits_for_peer()) return;
    bool const is_known =
        std::any_of(waits.begin(), waits.end(), [&](Wait const& wait) { return wait.rank == channel.peer(); });
    if (!is_known) waits.push_back({channel.peer(), channel.where()});
  };
  // Skips peers that wait for this rank: waits_for_peer() is false for them, and they are not to blame.
  for (auto const& channel : receives_) add(*channel);
  for (auto const& channel : sends_) add(*channel);
  return waits;
}

std::optional<std::string> PeerWatch::waits_where(plan::Rank rank) const {
  for (auto& wait : waits())
    if (wait.rank == rank) return std::move(wait.where);
  return std::nullopt;
}

std::vector<plan::Rank> PeerWatch::begin_inquiry(TimePoint now) {
  until_inquiry_ = std::min(until_inquiry_ * 2, inquiry_);
  next_inquiry_ = now + until_inquiry_;
  if (!failure_detector_) failure_detector_.emplace(spec_.members.size());
  std::vector<plan::Rank> ranks;
  for (auto const& wait : waits()) ranks.push_back(wait.rank);
  return ranks;
}

void PeerWatch::look_for_own_silence(TimePoint now) {
  if (failure_detector_ && now - next_inquiry_ >= silence_ / 5) failure_detector_->stood_still(now);
}

std::optional<Failure> PeerWatch::lost_in_silence(TimePoint now) const {
  if (!failure_detector_) return std::nullopt;
  for (auto const& wait : waits()) {
    auto const owing = failure_detector_->owing(wait.rank, now);
    if (owing < silence_) continue;
    return Failure{EngineErrc::peer_lost,
                   "lost " + name_of(spec_, wait.rank) + " while " + wait.where + ": it has not answered for " +
                       std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(owing).count()) + " ms",
                   {wait.rank},
                   {}};
  }
  return std::nullopt;
}

// If there is a link from the rank, its data may still be on the way; and a link that it has just dialed is known here
// in a moment.
std::optional<Failure> PeerWatch::lost_on_the_way(std::function<bool(Peer const&)> const& has_link_from) const {
  if (!failure_detector_) return std::nullopt;
  for (auto const& wait : waits()) {
    auto const ended_for = failure_detector_->ended_for(wait.rank);
    if (!ended_for || *ended_for < (has_link_from(spec_.members[wait.rank]) ? silence_ : moment)) continue;
    return Failure{EngineErrc::peer_lost,
                   "lost what " + name_of(spec_, wait.rank) + " sent while " + wait.where +
                       ": its part of the run has ended, and the link is gone",
                   {wait.rank},
                   {}};
  }
  return std::nullopt;
}

std::optional<std::string> PeerWatch::awaits_open_of(plan::Rank rank) const {
  for (auto const& channel : receives_)
    if (channel->peer() == rank && !channel->is_opened()) return channel->where();
  return std::nullopt;
}

std::optional<Suspect> PeerWatch::suspect(Wait const& wait, TimePoint now) const {
  if (!failure_detector_) return std::nullopt;
  auto const self = spec_.program->rank;
  return failure_detector_->suspect(wait.rank, self, name_of(spec_, self) + " waits for it, " + wait.where, now);
}

// The gravest suspicion; of equal ones the one that has lasted longest.
std::optional<Suspect> PeerWatch::suspect(TimePoint now) const {
  std::optional<Suspect> worst;
  for (auto const& wait : waits())
    if (auto found = suspect(wait, now))
      if (!worst || std::pair(found->kind, found->lasting) > std::pair(worst->kind, worst->lasting))
        worst = std::move(found);
  return worst;
}

std::string PeerWatch::not_finished() const {
  auto const allowed = std::chrono::duration_cast<std::chrono::milliseconds>(spec_.deadline - started_).count();
  return "not finished after " + std::to_string(allowed) + " ms";
}

std::optional<Failure> PeerWatch::expired(TimePoint now) {
  using links::Suspicion;
  std::vector<Suspect> suspects;
  for (auto const& wait : waits()) {
    // A rank that has not answered is judged by what was heard of it before.
    auto const kind = heard_[wait.rank] ? Suspicion::slow : Suspicion::not_called;
    suspects.push_back(suspect(wait, now).value_or(Suspect{wait.rank, kind, {}, wait.where}));
  }
  auto worst = Suspicion::nobody;
  for (auto const& suspect : suspects) worst = std::max(worst, suspect.kind);
  // Another rank may know the culprit, and reports it at the same deadline.
  if (worst <= Suspicion::slow && !in_grace_ && spec_.members.size() > 2) {
    in_grace_ = true;
    return std::nullopt;
  }
  Failure failure;
  failure.code = EngineErrc::deadline_exceeded;
  failure.text = not_finished();
  for (auto const& [rank, kind, lasting, text] : suspects) {
    if (kind != worst) continue;
    if (std::find(failure.culprits.begin(), failure.culprits.end(), rank) != failure.culprits.end()) continue;
    failure.culprits.push_back(rank);
    auto const ms = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(lasting).count()) + " ms";
    failure.text += (failure.culprits.size() == 1 ? ": " : ", ") + name_of(spec_, rank);
    if (kind == Suspicion::not_called) failure.text += " never called";
    if (kind == Suspicion::slow) failure.text += " was slow, " + text;
    if (kind == Suspicion::silent) failure.text += " has not answered for " + ms + "; " + text;
  }
  std::sort(failure.culprits.begin(), failure.culprits.end());
  return failure;
}

}  // namespace chorus::engine
