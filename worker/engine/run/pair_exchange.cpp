// Runs that are one exchange (pair_exchange.hpp).
#include <algorithm>
#include <cstring>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/engine/run/run.hpp"
#include "worker/engine/transport/receive_connection.hpp"

namespace chorus::engine {

bool PairExchange::expects(links::CoalescedFrame const& coalesced_frame, std::uint64_t run) const {
  auto const is = [run](links::FrameHeader expected, links::FrameHeader const& header) {
    expected.run = run;
    return header == expected;
  };
  return is(expected_open, coalesced_frame.open) && is(expected_data, coalesced_frame.data) &&
         std::memcmp(expected_opening.data(), coalesced_frame.opening.data(), coalesced_frame.opening.size()) == 0;
}

namespace {

// With more instructions the list would take longer than it saves.
constexpr std::size_t instructions_max = 8;

// Number of the only instruction for which `is` holds; the number of instructions if there is none or several.
template <class Is>
std::uint32_t only(plan::Program const& program, Is const& is) {
  auto const& all = program.instructions;
  auto const found = std::find_if(all.begin(), all.end(), is);
  bool const is_only = std::count_if(all.begin(), all.end(), is) == 1;
  return static_cast<std::uint32_t>((is_only ? found : all.end()) - all.begin());
}

}  // namespace

std::optional<PairExchange> Run::as_exchange(std::uint64_t incarnation) const {
  auto const& program = *spec_.program;
  auto const size = program.instructions.size();
  if (!workspace_ || size > instructions_max) return {};
  PairExchange exchange;
  exchange.send = only(program, [](auto const& each) { return each.op == plan::Opcode::send; });
  exchange.receive = only(program, [](auto const& each) { return each.receives(); });
  if (exchange.send == size || exchange.receive == size) return {};
  auto const& send = *sends_.front();
  auto const& receive = *receives_.front();
  auto const sent_bytes = state_.board.total(exchange.send), received_bytes = state_.board.total(exchange.receive);
  auto const most = std::min<std::uint64_t>(links::coalesced_frame_bytes_max, state_.segment_bytes);
  bool const is_one = send.peer() == receive.peer() && send.is_small() && sent_bytes <= most &&
                      receive.stage_bytes() != 0 && received_bytes <= most &&
                      program.dependencies_of(exchange.send).empty() && workspace_->flow_limits().empty() &&
                      workspace_->source(exchange.send, sent_bytes).size() == sent_bytes;
  if (!is_one) return {};
  exchange.sent = send.coalesced_frame(static_cast<std::uint32_t>(sent_bytes));

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

  for (std::uint32_t i = 0; i < size; ++i)
    for (auto const& dependency : program.dependencies_of(i))
      CHORUS_ASSERT(dependency.instruction < i, "instructions can be done in their order");
  exchange.steps = timeline_.steps(state_.board.totals());
  return exchange;
}

void Run::begin_exchange(RunCall const& call, TimePoint now) {
  begin_memory(call, now);
  auto& coalesced_frame = exchange_->sent;
  coalesced_frame.open.run = coalesced_frame.data.run = call.run;
  coalesced_frame.payload = workspace_->source(exchange_->send, coalesced_frame.data.length);
}

void Run::exchange_sent(RunDone done, TimePoint at) {
  done_ = std::move(done);
  exchange_->sent_at = at;
  ended_ = false;
}

bool Run::takes(links::CoalescedFrame const& coalesced_frame, Identity const& sender, Scratch scratch) {
  auto const& member = spec_.members[receives_.front()->peer()];
  if (!exchange_->expects(coalesced_frame, spec_.run) || member.worker != sender.worker ||
      member.incarnation != sender.incarnation)
    return false;
  auto payload = coalesced_frame.payload;
  if (reinterpret_cast<std::uintptr_t>(payload.data()) % state_.element_bytes != 0) {
    std::memcpy(scratch.data(), payload.data(), payload.size());
    payload = scratch.first(payload.size());
  }
  for (std::uint32_t i = 0; i < exchange_->steps.size(); ++i)
    if (i == exchange_->receive)
      workspace_->take_in(i, payload);
    else if (i != exchange_->send)
      workspace_->work(i, state_.board.total(i));
  return true;
}

void Run::unfold(links::Taken taken) {
  begin_parts();
  auto& channel = *sends_.front();
  channel.wake(0);
  channel.skip(taken);
  CHORUS_ASSERT(taken == links::Taken::whole ? channel.finished() : channel.in_flight() == 1,
                "what an exchange sends waits for nothing");
  timeline_.date_back(exchange_->sent_at);
}

RunResult Run::end_exchange(TimePoint arrived) {
  ended_ = true;
  auto const since_start = [this](TimePoint at) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(at - started_).count();
  };
  RunResult result;
  result.started = started_;
  auto& statistics = result.statistics;
  statistics.duration = arrived - started_;
  // All of the run is waiting: until its message is on the way, then for the peer's message.
  statistics.wait_seconds = statistics.seconds();
  statistics.bytes_sent = exchange_->sent.data.length;
  statistics.bytes_received = exchange_->expected_data.length;
  statistics.steps = static_cast<std::uint32_t>(exchange_->steps.size());
  statistics.reduced = workspace_->reduced();
  result.trace = std::make_unique<RunTrace>();
  auto& steps = result.trace->instructions = exchange_->steps;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    steps[i].moved_ns = steps[i].done_ns = since_start(i == exchange_->send ? exchange_->sent_at : arrived);
    steps[i].ready_ns = 0;
    for (auto const& dependency : spec_.program->dependencies_of(i))
      steps[i].ready_ns = std::max(steps[i].ready_ns, steps[dependency.instruction].done_ns);
  }
  return result;
}

}  // namespace chorus::engine
