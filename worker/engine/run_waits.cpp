// Whom a run waits for, and what becomes of it when they do not come.
#include <algorithm>
#include <utility>

#include "worker/engine/run.hpp"

namespace chorus::engine {
namespace {

constexpr std::chrono::seconds moment{1};  // a thread that was not let run for a while has gone on

}  // namespace

Run::TimePoint Run::next_deadline() const {
  return std::min(in_grace_ ? spec_.deadline + grace : spec_.deadline, next_inquiry_);
}

std::vector<Run::Wait> Run::waits() const {
  std::vector<Wait> waits;
  auto const add = [&waits](auto const& channel) {
    if (!channel.waits_for_peer()) return;
    bool const is_known =
        std::any_of(waits.begin(), waits.end(), [&](Wait const& wait) { return wait.rank == channel.peer(); });
    if (!is_known) waits.push_back({channel.peer(), channel.where()});
  };
  // A rank that only waits in turn is not to blame: what it lacks is this rank's to send.
  for (auto const& channel : receives_) add(*channel);
  for (auto const& channel : sends_) add(*channel);
  return waits;
}

std::optional<std::string> Run::waits_where(plan::Rank rank) const {
  for (auto& wait : waits())
    if (wait.rank == rank) return std::move(wait.where);
  return std::nullopt;
}

std::vector<plan::Rank> Run::begin_inquiry(TimePoint now) {
  until_inquiry_ = std::min(until_inquiry_ * 2, inquiry_);
  next_inquiry_ = now + until_inquiry_;
  if (!witness_) witness_.emplace(spec_.members.size());
  std::vector<plan::Rank> ranks;
  for (auto const& wait : waits()) ranks.push_back(wait.rank);
  return ranks;
}

void Run::look_for_own_silence(TimePoint now) {
  if (witness_ && now - next_inquiry_ >= silence_ / 5) witness_->stood_still(now);
}

std::optional<Failure> Run::lost_in_silence(TimePoint now) const {
  if (!witness_) return std::nullopt;
  for (auto const& wait : waits()) {
    auto const owing = witness_->owing(wait.rank, now);
    if (owing < silence_) continue;
    return Failure{EngineErrc::peer_lost,
                   "lost " + name_of(wait.rank) + " while " + wait.where + ": it has not answered for " +
                       std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(owing).count()) + " ms",
                   {wait.rank},
                   {}};
  }
  return std::nullopt;
}

// Where there is a link from it, what it sent may still be on its way; and one that it has just dialed is known here in
// a moment.
std::optional<Failure> Run::lost_on_the_way(std::function<bool(Peer const&)> const& has_link_from) const {
  if (!witness_) return std::nullopt;
  for (auto const& wait : waits()) {
    auto const ended_for = witness_->ended_for(wait.rank);
    if (!ended_for || *ended_for < (has_link_from(spec_.members[wait.rank]) ? silence_ : moment)) continue;
    return Failure{EngineErrc::peer_lost,
                   "lost what " + name_of(wait.rank) + " sent while " + wait.where +
                       ": its part of the run has ended, and the link is gone",
                   {wait.rank},
                   {}};
  }
  return std::nullopt;
}

std::optional<std::string> Run::awaits_open_of(plan::Rank rank) const {
  for (auto const& channel : receives_)
    if (channel->peer() == rank && !channel->is_opened()) return channel->where();
  return std::nullopt;
}

std::optional<Suspect> Run::suspect(Wait const& wait, TimePoint now) const {
  if (!witness_) return std::nullopt;
  auto const self = spec_.program->rank;
  return witness_->suspect(wait.rank, self, name_of(self) + " waits for it, " + wait.where, now);
}

// The gravest, and of equals the one that has been like that for the longest time.
std::optional<Suspect> Run::suspect(TimePoint now) const {
  std::optional<Suspect> worst;
  for (auto const& wait : waits())
    if (auto found = suspect(wait, now))
      if (!worst || std::pair(found->kind, found->lasting) > std::pair(worst->kind, worst->lasting))
        worst = std::move(found);
  return worst;
}

std::optional<Failure> Run::expired(TimePoint now) {
  if (now < (in_grace_ ? spec_.deadline + grace : spec_.deadline)) return std::nullopt;
  auto const allowed = std::chrono::duration_cast<std::chrono::milliseconds>(spec_.deadline - started_).count();
  auto const not_finished = "not finished after " + std::to_string(allowed) + " ms";
  if (auto late = device_is_late(now)) {
    late->text = not_finished + ": " + late->text;
    return late;
  }
  using links::Suspicion;
  std::vector<Suspect> suspects;
  for (auto const& wait : waits()) {
    // Without an answer there is what was heard of it before.
    auto const kind = heard_[wait.rank] ? Suspicion::slow : Suspicion::not_called;
    suspects.push_back(suspect(wait, now).value_or(Suspect{wait.rank, kind, {}, wait.where}));
  }
  auto worst = Suspicion::nobody;
  for (auto const& suspect : suspects) worst = std::max(worst, suspect.kind);
  // Somebody else may know better, and says so at this same deadline.
  if (worst <= Suspicion::slow && !in_grace_ && spec_.members.size() > 2) {
    in_grace_ = true;
    return std::nullopt;
  }
  Failure failure;
  failure.code = EngineErrc::deadline_exceeded;
  failure.text = not_finished;
  for (auto const& [rank, kind, lasting, text] : suspects) {
    if (kind != worst) continue;
    if (std::find(failure.culprits.begin(), failure.culprits.end(), rank) != failure.culprits.end()) continue;
    failure.culprits.push_back(rank);
    auto const ms = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(lasting).count()) + " ms";
    failure.text += (failure.culprits.size() == 1 ? ": " : ", ") + name_of(rank);
    if (kind == Suspicion::not_called) failure.text += " never called";
    if (kind == Suspicion::slow) failure.text += " was slow, " + text;
    if (kind == Suspicion::silent) failure.text += " has not answered for " + ms + "; " + text;
  }
  std::sort(failure.culprits.begin(), failure.culprits.end());
  return failure;
}

std::optional<Failure> Run::device_is_late(TimePoint now) const {
  if (!device_ || !device_->is_at_work() || now - device_->still_since() < grace) return std::nullopt;
  auto const self = spec_.program->rank;
  auto const still = std::chrono::duration_cast<std::chrono::milliseconds>(now - device_->still_since()).count();
  return Failure{EngineErrc::deadline_exceeded,
                 name_of(self) + ": " + device_->device() + " has done nothing of what was queued there for " +
                     std::to_string(still) + " ms",
                 {self},
                 {}};
}

}  // namespace chorus::engine
