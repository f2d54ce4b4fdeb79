#include "worker/engine/program/scoreboard.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"

namespace chorus::engine {
namespace {

constexpr auto no_lag = ~std::uint32_t{0};

}  // namespace

Scoreboard::Scoreboard(plan::Program const& program, std::vector<std::uint64_t> total_bytes,
                       std::vector<FlowLimit> const& flow_limits, Timeline* timeline,
                       std::optional<Coding> const& coding)
    : program_(program),
      total_(std::move(total_bytes)),
      done_(total_.size()),
      flow_limits_(flow_limits),
      waits_(total_.size()),
      dependents_(program.dependencies.size()),
      dependents_begin_(total_.size() + 1),
      coding_(coding),
      counted_(coding ? how_counted(program) : std::vector<Counted>()),
      woken_(total_.size()),
      is_woken_(total_.size()),
      timeline_(timeline) {
  CHORUS_ASSERT(total_.size() == program.instructions.size(), "every instruction has a size");
  auto const count = static_cast<std::uint32_t>(total_.size());
  for (auto const& dependency : program.dependencies) ++dependents_begin_[dependency.instruction + 1];
  for (std::uint32_t i = 0; i < count; ++i) dependents_begin_[i + 1] += dependents_begin_[i];
  std::vector<std::uint32_t> next(dependents_begin_.begin(), dependents_begin_.end() - 1);
  for (std::uint32_t i = 0; i < count; ++i)
    for (auto const& dependency : program.dependencies_of(i))
      dependents_[next[dependency.instruction]++] = {i, dependency.segmentwise};
  if (!flow_limits_.empty()) {
    ahead_.assign(count, no_lag);
    behind_.assign(count, no_lag);
    for (std::uint32_t l = 0; l < flow_limits_.size(); ++l)
      ahead_[flow_limits_[l].ahead] = behind_[flow_limits_[l].behind] = l;
  }
  begin();
}

void Scoreboard::begin() {
  auto const count = static_cast<std::uint32_t>(total_.size());
  std::fill(done_.begin(), done_.end(), 0);
  std::fill(waits_.begin(), waits_.end(), 0);
  std::fill(is_woken_.begin(), is_woken_.end(), false);
  woken_.clear();
  completed_ = 0;
  progress_ = 0;
  for (std::uint32_t i = 0; i < count; ++i)
    for (auto const& dependency : program_.dependencies_of(i))
      if (waits_for_whole(i, dependency.segmentwise)) ++waits_[i];
  for (std::uint32_t i = 0; i < count; ++i)
    if (waits_[i] == 0) {
      wake(i);
      if (timeline_ != nullptr && allowed_by_dependencies(i) == total_[i]) timeline_->ready(i, 0);
    }
}

std::uint64_t Scoreboard::ready(std::uint32_t i) const {
  auto const allowed = allowed_by_dependencies(i);
  if (ahead_.empty() || ahead_[i] == no_lag) return allowed;
  auto const& flow_limit = flow_limits_[ahead_[i]];
  return std::min(allowed, done_[flow_limit.behind] + flow_limit.bytes);
}

std::uint64_t Scoreboard::allowed_by_dependencies(std::uint32_t i) const {
  if (waits_[i] != 0) return 0;
  auto prefix = total_[i];
  for (auto const& dependency : program_.dependencies_of(i))
    if (dependency.segmentwise)
      prefix = std::min(prefix, counted_.empty() ? done_[dependency.instruction] : reached(dependency.instruction, i));
  return prefix;
}

std::uint64_t Scoreboard::reached(std::uint32_t dependency, std::uint32_t i) const {
  auto const done = done_[dependency];
  if (done == total_[dependency]) return total_[i];
  bool const from_codes = counted_[dependency] == Counted::in_codes, to_codes = counted_[i] == Counted::in_codes;
  auto const units = done / (from_codes ? coding_->unit_codes_bytes() : coding_->unit_bytes());
  if (from_codes != to_codes) return units * (to_codes ? coding_->unit_codes_bytes() : coding_->unit_bytes());
  return counted_[i] == Counted::in_units ? units * coding_->unit_bytes() : done;
}

void Scoreboard::advance(std::uint32_t i, std::uint64_t bytes) {
  bool const is_first = done_[i] == 0;
  done_[i] += bytes;
  progress_ += bytes;
  CHORUS_ASSERT(bytes != 0 && done_[i] <= total_[i], "progress stays within the instruction");
  if (done_[i] == total_[i]) return complete(i);
  if (is_first && timeline_ != nullptr) timeline_->moved(i);
  for (auto d = dependents_begin_[i]; d < dependents_begin_[i + 1]; ++d) {
    auto const dependent = dependents_[d].instruction;
    if (!dependents_[d].segmentwise || waits_[dependent] != 0) continue;
    wake(dependent);
    if (is_first && timeline_ != nullptr) timeline_->ready(dependent);
  }
  if (!behind_.empty() && behind_[i] != no_lag) wake(flow_limits_[behind_[i]].ahead);
}

void Scoreboard::complete(std::uint32_t i) {
  ++completed_;
  std::int64_t const now_ns = timeline_ != nullptr ? timeline_->done(i) : 0;
  for (auto d = dependents_begin_[i]; d < dependents_begin_[i + 1]; ++d) {
    auto const& [dependent, segmentwise] = dependents_[d];
    if (waits_for_whole(dependent, segmentwise)) --waits_[dependent];
    if (waits_[dependent] != 0) continue;
    wake(dependent);
    if (timeline_ != nullptr) timeline_->ready(dependent, now_ns);
  }
}

std::optional<std::uint32_t> Scoreboard::next() {
  while (!woken_.empty()) {
    auto const i = woken_.front();
    woken_.pop();
    is_woken_[i] = false;
    if (total_[i] != 0) return i;
    complete(i);  // happens once: an instruction without bytes is woken only when its last dependency is completed
  }
  return std::nullopt;
}

void Scoreboard::wake(std::uint32_t i) {
  if (is_woken_[i]) return;
  is_woken_[i] = true;
  woken_.push(i);
}

}  // namespace chorus::engine
