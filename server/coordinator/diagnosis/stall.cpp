#include "server/coordinator/diagnosis/stall.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <set>
#include <string_view>

namespace chorus::coordinator {
namespace {

using LookKind = RankLook::Kind;

std::string_view name_of(LookKind kind) {
  constexpr std::array<std::string_view, 5> names{"ended", "running", "busy", "not_begun", "silent"};
  return names.at(static_cast<std::size_t>(kind));
}

std::vector<std::uint32_t> of_kind(std::vector<RankLook> const& looks, std::initializer_list<LookKind> kinds) {
  std::vector<std::uint32_t> ranks;
  for (auto const& look : looks)
    if (std::find(kinds.begin(), kinds.end(), look.kind) != kinds.end()) ranks.push_back(look.rank);
  return ranks;
}

template <class Wanted>
std::vector<std::uint32_t> awaited(std::vector<RankLook> const& looks, Wanted const& wanted) {
  std::set<std::string_view> workers;
  for (auto const& look : looks)
    for (auto const& one : look.progress.waiting_for)
      if (wanted(one)) workers.insert(one.worker);
  std::vector<std::uint32_t> ranks;
  for (auto const& look : looks)
    if (workers.contains(look.worker)) ranks.push_back(look.rank);
  return ranks;
}

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", seconds);
  return text.data();
}

// Returns the first running instruction that waits for a peer, or the first of all.
api::InstructionState const* instruction_of(api::RunProgress const& progress) {
  for (auto const& state : progress.instructions)
    for (auto const& one : progress.waiting_for)
      if (state.peer == one.rank) return &state;
  return progress.instructions.empty() ? nullptr : &progress.instructions.front();
}

std::string describe(api::InstructionState const& state, std::uint32_t steps, std::optional<std::uint32_t> peer) {
  auto text = state.op;
  if (peer) text += (state.op == "send" ? " to rank " : " from rank ") + std::to_string(*peer);
  if (state.message) text += ", message " + std::to_string(*state.message + 1);
  return text + " (step " + std::to_string(state.instruction + 1) + " of " + std::to_string(steps) + "), " +
         std::to_string(state.bytes_done) + " of " + std::to_string(state.bytes) + " bytes";
}

std::string_view what_it_does(LookKind kind) {
  switch (kind) {
    case LookKind::silent:
      return "which does not answer";
    case LookKind::not_begun:
      return "which has not begun";
    case LookKind::busy:
      return "which is busy with it outside of the network";
    case LookKind::running:
    case LookKind::ended:
      break;
  }
  return "which runs";
}

}  // namespace

std::vector<std::uint32_t> waited_for(std::vector<RankLook> const& looks) {
  if (auto ranks = of_kind(looks, {LookKind::silent, LookKind::not_begun}); !ranks.empty()) return ranks;
  if (auto ranks = of_kind(looks, {LookKind::busy}); !ranks.empty()) return ranks;
  auto const is_suspect = [](api::AwaitedRank const& one) {
    return one.suspicion == "silent" || one.suspicion == "not_called";
  };
  if (auto ranks = awaited(looks, is_suspect); !ranks.empty()) return ranks;
  auto all = awaited(looks, [](api::AwaitedRank const&) { return true; });
  std::vector<std::uint32_t> idle;
  for (auto const& look : looks)
    if (look.kind == LookKind::running && look.progress.waiting_for.empty()) idle.push_back(look.rank);
  return idle.empty() ? all : idle;
}

double still_seconds(std::vector<RankLook> const& looks, double otherwise_s) {
  std::optional<double> least;
  for (auto const& look : looks)
    if (look.kind == LookKind::running)
      least = std::min(least.value_or(look.progress.still_seconds), look.progress.still_seconds);
  return std::min(least.value_or(otherwise_s), otherwise_s);
}

api::Stall to_stall(std::vector<RankLook> const& looks, double for_s) {
  api::Stall stall;
  stall.for_s = for_s;
  stall.waiting_for = waited_for(looks);
  for (auto const& look : looks) {
    auto& shown = stall.ranks.emplace_back();
    shown.rank = look.rank;
    shown.worker = look.worker;
    shown.state = name_of(look.kind);
    shown.for_s = look.kind == LookKind::running ? look.progress.still_seconds : for_s;
    if (look.kind != LookKind::running) continue;
    if (auto const* const state = instruction_of(look.progress)) {
      for (auto const& one : look.progress.waiting_for)
        if (state->peer == one.rank)
          for (auto const& other : looks)
            if (other.worker == one.worker) shown.peer = other.rank;
      shown.instruction = describe(*state, look.progress.steps, shown.peer);
    }
  }
  stall.text = "nothing has moved for " + seconds_text(for_s);
  for (auto const rank : stall.waiting_for) {
    auto const look = std::find_if(looks.begin(), looks.end(), [rank](auto const& one) { return one.rank == rank; });
    stall.text += (rank == stall.waiting_for.front() ? ": waiting for rank " : ", rank ") + std::to_string(rank) +
                  " ('" + look->worker + "'), " + std::string(what_it_does(look->kind));
  }
  return stall;
}

}  // namespace chorus::coordinator
