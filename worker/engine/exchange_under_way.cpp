// The exchange of an engine that is under way (run/pair_exchange.hpp).
#include <utility>

#include "worker/engine/engine.hpp"

namespace chorus::engine {

bool Engine::begin_exchange(std::unique_ptr<Run>& kept, RunCall const& call, RunDone& done) {
  if (kept->exchange() == nullptr || exchange_.run != nullptr || memory_is_unsound()) return false;
  auto const& channel = *kept->sends().front();
  auto* const send_connection = connections_.find_for(channel, kept->spec().members[channel.peer()]);
  if (send_connection == nullptr) return false;
  for (auto const& receive_connection : connections_.receives())
    if (receive_connection->has_early(call.run)) return false;
  auto const began = surroundings_.now();
  kept->begin_exchange(call, began);
  auto const taken = send_connection->send(kept->exchange()->sent, began);
  if (taken == links::Taken::nothing) return false;
  auto const sent_at = surroundings_.now();
  if (taken == links::Taken::whole) send_connection->sent(kept->exchange()->sent, sent_at - began);
  kept->exchange_sent(std::move(done), sent_at);
  exchange_ = {std::move(kept), send_connection, false};
  if (taken == links::Taken::in_part) unfold_exchange(taken);
  surroundings_.deadline_changed();
  return true;
}

// From here on the run counts as ended well, also for frames that arrive before its end is reported.
bool Engine::exchange_takes(links::CoalescedFrame const& coalesced_frame, Identity const& sender, Scratch scratch) {
  if (!awaits_coalesced_frame(coalesced_frame.open.run) || memory_is_unsound()) return false;
  if (!exchange_.run->takes(coalesced_frame, sender, scratch)) return false;
  remember(*exchange_.run).failure.reset();
  return exchange_.has_arrived = true;
}

void Engine::end_exchange() {
  auto under_way = std::exchange(exchange_, {});
  auto& run = under_way.run;
  auto result = run->end_exchange(surroundings_.now());
  auto failure = unsound_memory();
  if (failure) {
    result.status = Error(failure->code, failure->detail());
    auto const& spec = run->spec();
    under_way.send_connection->send_failure_notice(links::FrameType::abort, spec.run, spec.epoch,
                                                   to_failure_notice(*failure, spec.token));
  }
  if (failure) remember(*run).failure = std::move(failure);
  auto const done = run->take_done();
  if (auto const kind = std::exchange(run->of_kind, nullptr); kind && result.status.has_value())
    kind->keep(std::move(run));
  done(std::move(result));
}

void Engine::unfold_exchange(links::Taken taken) {
  if (exchange_.run == nullptr || exchange_.has_arrived) return;
  auto under_way = std::exchange(exchange_, {});
  under_way.run->unfold(taken);
  auto& run = list(std::move(under_way.run));
  under_way.send_connection->add(*run.sends().front());
}

}  // namespace chorus::engine
