// Runs that are nothing but an exchange (pair_exchange.hpp).
#include <algorithm>
#include <cstring>
#include <utility>

#include "worker/engine/inlet.hpp"
#include "worker/engine/run.hpp"

namespace chorus::engine {

bool PairExchange::expects(links::Parcel const& parcel, std::uint64_t run) const {
  auto const is = [run](links::FrameHeader expected, links::FrameHeader const& header) {
    expected.run = run;
    return header == expected;
  };
  return is(expected_open, parcel.open) && is(expected_data, parcel.data) &&
         std::memcmp(expected_opening.data(), parcel.opening.data(), parcel.opening.size()) == 0;
}

std::optional<PairExchange> Run::as_exchange(std::uint64_t incarnation) const {
  auto const& program = *spec_.program;
  if (!workspace_ || program.instructions.size() != 2 || sends_.size() != 1 || receives_.size() != 1) return {};
  auto const& send = *sends_.front();
  auto const& receive = *receives_.front();
  PairExchange exchange;
  exchange.send = program.instructions[0].op == plan::Opcode::send ? 0 : 1;
  exchange.receive = 1 - exchange.send;
  auto const sent_bytes = state_.board.total(exchange.send), received_bytes = state_.board.total(exchange.receive);
  auto const most = std::min<std::uint64_t>(links::parcel_bytes_max, state_.segment_bytes);
  bool const is_one = send.peer() == receive.peer() && send.is_small() && sent_bytes <= most &&
                      receive.stage_bytes() != 0 && received_bytes <= most &&
                      state_.board.ready(exchange.send) == sent_bytes &&
                      workspace_->source(exchange.send, sent_bytes).size() == sent_bytes;
  if (!is_one) return {};
  exchange.sent = send.parcel(static_cast<std::uint32_t>(sent_bytes));

  links::Open open;
  open.token = spec_.token;
  open.fingerprint = spec_.fingerprint;
  open.channel_digest = receive.digest();
  open.receiver_incarnation = incarnation;
  open.eager_bytes = state_.eager_bytes;
  open.sender_rank = receive.peer();
  open.receiver_rank = program.rank;
  exchange.expected_open.type = links::FrameType::open;
  exchange.expected_open.epoch = exchange.expected_data.epoch = spec_.epoch;
  exchange.expected_open.length = links::encode(open, spec_.description, exchange.expected_opening);
  exchange.expected_data.length = static_cast<std::uint32_t>(received_bytes);

  exchange.receives_after_sending = !program.dependencies_of(exchange.receive).empty();
  exchange.steps = timeline_.steps(state_.board.totals());
  return exchange;
}

void Run::begin_exchange(RunCall const& call, TimePoint now) {
  begin_memory(call, now);
  auto& parcel = exchange_->sent;
  parcel.open.run = parcel.data.run = call.run;
  parcel.payload = workspace_->source(exchange_->send, parcel.data.length);
}

void Run::exchange_sent(RunDone done, TimePoint at) {
  done_ = std::move(done);
  exchange_->sent_at = at;
  ended_ = false;
}

bool Run::takes(links::Parcel const& parcel, Identity const& sender, Scratch scratch) {
  auto const& member = spec_.members[receives_.front()->peer()];
  if (!exchange_->expects(parcel, spec_.run) || member.worker != sender.worker ||
      member.incarnation != sender.incarnation)
    return false;
  auto payload = parcel.payload;
  if (reinterpret_cast<std::uintptr_t>(payload.data()) % state_.element_bytes != 0) {
    std::memcpy(scratch.data(), payload.data(), payload.size());
    payload = scratch.first(payload.size());
  }
  workspace_->take_in(exchange_->receive, payload);
  return true;
}

void Run::unfold() {
  begin_parts();
  work_on_host(0);
  sends_.front()->skip_what_was_sent();
  timeline_.date_back(exchange_->sent_at);
}

RunResult Run::end_exchange(TimePoint arrived) {
  ended_ = true;
  auto const since_start = [this](TimePoint at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at - started_).count();
  };
  RunResult result;
  result.started = started_;
  result.duration = arrived - started_;
  // Until what it sends is on its way, and then for what comes: all of it.
  result.wait_seconds = result.seconds();
  result.bytes_sent = exchange_->sent.data.length;
  result.bytes_received = exchange_->expected_data.length;
  result.steps = static_cast<std::uint32_t>(exchange_->steps.size());
  result.reduced = workspace_->reduced();
  result.trace = std::make_unique<RunTrace>();
  auto& steps = result.trace->instructions = exchange_->steps;
  auto& sent = steps[exchange_->send];
  auto& received = steps[exchange_->receive];
  sent.ready_ns = 0;
  sent.moved_ns = sent.done_ns = since_start(exchange_->sent_at);
  received.ready_ns = exchange_->receives_after_sending ? sent.done_ns : 0;
  received.moved_ns = received.done_ns = since_start(arrived);
  return result;
}

}  // namespace chorus::engine
