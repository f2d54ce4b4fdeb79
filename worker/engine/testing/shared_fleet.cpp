#include "worker/engine/testing/shared_fleet.hpp"

#include <algorithm>
#include <new>
#include <numeric>

#include "collectives/core/assert.hpp"

namespace chorus::engine::testing {
namespace {

constexpr std::uint64_t arena_bytes = 1u << 30;

}  // namespace

SharedFleet::SharedFleet(SharedFleetOptions options) : options_(options), random_(options.seed) {
  BoardLayout layout(options.ranks);
  layout.block_bytes = options.block_bytes;
  layout.slot_bytes = options.slot_bytes;
  for (plan::Rank rank = 0; rank < options.ranks; ++rank) {
    auto& member = *members_.emplace_back(std::make_unique<Member>());
    auto region = memory::SharedRegion::create(memory::random_ticket(arena_bytes));
    member.arena = std::make_unique<memory::Arena>(std::move(region.value()));
    member.board = member.arena->allocate_once(layout.board_bytes()).value();
    new (member.board.data()) BoardHead{};
    for (plan::Rank sender = 0; sender < options.ranks; ++sender)
      new (member.board.data() + layout.lane_at(sender)) Lane{};
  }
  for (plan::Rank rank = 0; rank < options.ranks; ++rank)
    for (plan::Rank other = 0; other < options.ranks; ++other) {
      auto& lane = members_[rank]->lanes.emplace_back();
      if (other == rank) continue;
      auto const& there = *members_[other];
      auto const region = memory::PeerRegion::open(there.arena->ticket()).value();
      auto const board = region->mapping().at(*there.arena->offset_of(there.board), layout.board_bytes());
      lane = std::make_unique<SharedLane>(layout, rank, other, members_[rank]->board, members_[rank]->arena->mapping(),
                                          region, board);
    }
}

SharedFleet::~SharedFleet() {
  for (auto& member : members_)
    while (!member->calls.empty()) end(*member, member->calls.front(), Error(EngineErrc::aborted, "the fleet stops"));
}

Peer SharedFleet::peer(plan::Rank rank) const { return {rank, "w" + std::to_string(rank), rank + 1, "shm"}; }

void SharedFleet::start(plan::Rank rank, RunSpec spec, RunDone done) {
  auto& member = *members_[rank];
  auto& call = member.calls.emplace_back();
  call.spec = std::move(spec);
  call.done = std::move(done);
}

void SharedFleet::begin(Member& member, Call& call) {
  auto const& spec = call.spec;
  call.begun = true;
  call.call =
      SharedCall::make(spec.program, spec.sizes, spec.dtype, spec.reduce, spec.fingerprint, *member.arena).value();
  auto input = spec.input;
  auto output = spec.output;
  if (options_.in_arena) {
    call.output = member.arena->allocate(output.size()).value();
    std::copy(output.begin(), output.end(), call.output.begin());
    bool const in_place = !input.empty() && input.data() == output.data();
    call.input = in_place ? call.output.first(input.size()) : member.arena->allocate(input.size()).value();
    std::copy(input.begin(), input.end(), call.input.begin());
    input = call.input;
    output = call.output;
  }
  call.call->begin(member.made++, member.lanes, input, output);
}

void SharedFleet::end(Member& member, Call& call, Status status) {
  if (call.begun && options_.in_arena) {
    std::copy(call.output.begin(), call.output.end(), call.spec.output.begin());
    if (call.input.data() != call.output.data()) member.arena->free(call.input.data());
    member.arena->free(call.output.data());
  }
  RunResult result;
  result.status = std::move(status);
  if (call.begun) {
    result.statistics.steps = call.call->instructions_done();
    result.statistics.bytes_sent = call.call->bytes_sent();
    result.statistics.bytes_received = call.call->bytes_received();
  }
  auto const done = std::move(call.done);
  auto const spec = std::move(call.spec);
  member.calls.pop_front();
  done(std::move(result));
}

bool SharedFleet::take_turn(Member& member) {
  if (member.calls.empty()) return false;
  auto& call = member.calls.front();
  if (!call.begun) {
    begin(member, call);
    return true;
  }
  switch (call.call->turn()) {
    case SharedCall::Turn::waits:
      return false;
    case SharedCall::Turn::moved:
      return true;
    case SharedCall::Turn::done:
      end(member, call, ok());
      return true;
    case SharedCall::Turn::failed:
      break;
  }
  auto const failure = call.call->failure();
  end(member, call, Error(failure.code, failure.detail()));
  return true;
}

void SharedFleet::let_move() {
  std::vector<std::size_t> order(members_.size());
  std::iota(order.begin(), order.end(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    std::shuffle(order.begin(), order.end(), random_);
    for (auto const rank : order) moved = take_turn(*members_[rank]) || moved;
  }
}

bool SharedFleet::run_until(std::atomic<std::size_t> const& ended, std::size_t count) {
  let_move();
  return ended >= count;
}

}  // namespace chorus::engine::testing
