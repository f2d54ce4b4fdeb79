#include "worker/engine/run/exchange_runs.hpp"

#include <utility>

namespace chorus::engine {

bool ExchangeRuns::begin(std::unique_ptr<Run>& kept, RunCall const& call, RunDone& done) {
  if (kept->exchange() == nullptr || runs_.exchange().run != nullptr || memory_.is_unsound()) return false;
  auto const& channel = *kept->sends().front();
  auto* const send_connection = connections_.find_for(channel, kept->spec().members[channel.peer()]);
  if (send_connection == nullptr) return false;
  for (auto const& receive_connection : connections_.receives())
    if (receive_connection->early_runs().find(call.run) != nullptr) return false;
  auto const began = surroundings_.now();
  kept->begin_exchange(call, began);
  auto const taken = send_connection->send(kept->exchange()->sent, began);
  if (taken == links::Taken::nothing) return false;
  auto const sent_at = surroundings_.now();
  if (taken == links::Taken::whole) send_connection->sent(kept->exchange()->sent, sent_at - began);
  kept->exchange_sent(std::move(done), sent_at);
  runs_.exchange() = {std::move(kept), send_connection, false};
  if (taken == links::Taken::in_part) runs_.unfold_exchange(taken);
  surroundings_.deadline_changed();
  return true;
}

// From here on the run counts as ended well, also for frames that arrive before its end is reported.
bool ExchangeRuns::take(links::CoalescedFrame const& coalesced_frame, Identity const& sender, Scratch scratch) {
  if (!runs_.awaits_coalesced_frame(coalesced_frame.open.run) || memory_.is_unsound()) return false;
  auto& exchange = runs_.exchange();
  if (!exchange.run->takes(coalesced_frame, sender, scratch)) return false;
  runs_.record_end(*exchange.run).failure.reset();
  return exchange.has_arrived = true;
}

void ExchangeRuns::end_arrived() {
  if (!runs_.exchange().has_arrived) return;
  auto under_way = std::exchange(runs_.exchange(), {});
  auto& run = under_way.run;
  auto result = run->end_exchange(surroundings_.now());
  auto failure = memory_.failure();
  if (failure) {
    result.status = Error(failure->code, failure->detail());
    auto const& spec = run->spec();
    under_way.send_connection->send_failure_notice(links::FrameType::abort, spec.run, spec.epoch,
                                                   to_failure_notice(*failure, spec.token));
  }
  if (failure) runs_.record_end(*run).failure = std::move(failure);
  auto const done = run->take_done();
  if (auto const kind = std::exchange(run->of_kind, nullptr); kind && result.status.has_value())
    kind->keep(std::move(run));
  done(std::move(result));
}

}  // namespace chorus::engine
