#include "worker/engine/shm/calls/shared_call.hpp"

#include <algorithm>
#include <numeric>

namespace chorus::engine {

Result<std::unique_ptr<SharedCall>> SharedCall::make(std::shared_ptr<plan::Program const> program,
                                                     plan::Sizes const& sizes, Dtype dtype, ReduceOp reduce,
                                                     std::uint64_t fingerprint, memory::Arena& arena) {
  std::unique_ptr<SharedCall> call(new SharedCall(std::move(program), sizes, dtype, reduce, fingerprint, arena));
  if (auto ready = call->buffers_.prepare(call->addresses_, call->steps_); ready.has_error()) return ready.error();
  return call;
}

SharedCall::SharedCall(std::shared_ptr<plan::Program const> program, plan::Sizes const& sizes, Dtype dtype,
                       ReduceOp reduce, std::uint64_t fingerprint, memory::Arena& arena)
    : program_(std::move(program)),
      addresses_(*program_, sizes, chorus::element_bytes(dtype)),
      input_bytes_(addresses_.input_bytes()),
      output_bytes_(addresses_.output_bytes()),
      fingerprint_(fingerprint),
      element_bytes_(chorus::element_bytes(dtype)),
      arithmetic_(*program_, reduce, dtype),
      steps_(to_steps(*program_, addresses_, dtype)),
      whole_(folds_in_one_piece(steps_)),
      largest_message_(largest_message(steps_)),
      buffers_(dtype, steps_, arena),
      channels_(*program_, addresses_, fingerprint),
      sends_(steps_, buffers_, channels_) {
  if (auto plan = to_exchange(steps_)) exchange_.emplace(std::move(*plan), buffers_, channels_, arithmetic_);
  prepare_progress();
}

void SharedCall::prepare_progress() {
  std::size_t sources = 1, destinations = 1;
  for (auto const& step : steps_) {
    Progress progress;
    progress.cursors.resize(step.operands.size() + step.destinations.size());
    sources = std::max(sources, step.operands.size());
    destinations = std::max(destinations, step.destinations.size() + step.sends.size());
    progress_.push_back(std::move(progress));
  }
  sources_.resize(sources);
  arithmetic_.make_room(sources);
  destinations_.resize(destinations);
  order_.resize(steps_.size());
}

void SharedCall::begin(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes,
                       std::span<std::byte const> input, std::span<std::byte> output) {
  bool const refers = refers_to_memory(lanes);
  buffers_.use(input, output, refers);
  moves_whole_ = !refers;
  start(call, lanes);
}

void SharedCall::begin_in_pieces(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes,
                                 std::span<std::byte const> input, std::span<std::span<std::byte> const> pieces) {
  buffers_.use_pieces(input, pieces);
  moves_whole_ = false;
  start(call, lanes);
}

bool SharedCall::refers_to_memory(std::span<std::unique_ptr<SharedLane> const> lanes) const {
  return channels_.size() != 0 && largest_message_ > lanes[program_->channels[0].peer]->inside_max();
}

void SharedCall::start(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes) {
  channels_.begin(call, lanes);
  has_offered_ = false;
  instructions_done_ = 0;
  arithmetic_.start_over();
  exchanges_now_ = exchange_ && moves_whole_;
  if (exchanges_now_) return exchange_->begin();
  rewind_steps();
  if (buffers_.may_be_written()) has_offered_ = sends_.offer_landings();
}

void SharedCall::rewind_steps() {
  for (auto& progress : progress_) {
    progress.started = false;
    progress.moved = 0;
  }
  sends_.rewind();
  pending_ = order_;
  std::iota(pending_.begin(), pending_.end(), 0);
}

SharedCall::Turn SharedCall::exchange() {
  auto const result = exchange_->turn();
  awaited_ = nullptr;
  if (!result) return go_on_in_parts();
  switch (*result) {
    case Turn::moved:
      instructions_done_ = exchange_->plan().instructions_that_send;
      break;
    case Turn::waits:
      awaited_ = exchange_->awaited();
      order_.front() = static_cast<std::uint32_t>(steps_.size() - 1);
      pending_ = std::span(order_).first(1);
      break;
    case Turn::done:
      instructions_done_ = exchange_->plan().instructions;
      pending_ = {};
      break;
    case Turn::failed:
      failure_ = exchange_->failure();
      break;
  }
  return *result;
}

SharedCall::Turn SharedCall::go_on_in_parts() {
  exchanges_now_ = false;
  rewind_steps();
  instructions_done_ = 0;
  for (auto const& message : std::span(exchange_->plan().sent).first(exchange_->sent())) sends_.skip(message.step);
  return turn();
}

SharedCall::Turn SharedCall::turn() {
  if (exchanges_now_) return exchange();
  bool moved = false;
  std::size_t kept = 0;
  awaited_ = nullptr;
  for (auto const s : pending_) {
    auto const result = advance(s);
    if (result == Turn::failed) return result;
    moved = moved || result != Turn::waits;
    if (result == Turn::done)
      instructions_done_ += steps_[s].steps;
    else
      pending_[kept++] = s;
  }
  pending_ = pending_.first(kept);
  if (kept != 1) awaited_ = nullptr;
  if (kept == 0 && channels_.are_all_read()) return Turn::done;
  return moved ? Turn::moved : Turn::waits;
}

SharedCall::Turn SharedCall::advance(std::uint32_t s) {
  auto const& step = steps_[s];
  auto& progress = progress_[s];
  bool moved = false;
  if (!progress.started) {
    if (!may_start(step)) return Turn::waits;
    if (step.bytes != 0 && !step.destinations.empty()) {
      if (auto const found = look_for_operands(step); found != Turn::moved) return found;
      if (moves_whole_ && whole_[s] && fold_whole(step)) {
        progress.moved = step.bytes;
      } else {
        std::ranges::fill(progress.cursors, Cursor{});
        sends_.find_landings(s);
      }
    }
    // Messages without bytes are counted but never sent.
    if (step.bytes == 0)
      for (auto const& operand : step.operands)
        if (operand.message) channels_.take_nothing(operand.message->channel);
    progress.started = true;
    moved = true;
  }
  if (!step.destinations.empty() && progress.moved != step.bytes) {
    auto const before = progress.moved;
    if (auto const folded_all = fold(s); folded_all == Turn::failed) return folded_all;
    moved = moved || progress.moved != before;
    if (progress.moved != step.bytes) return moved ? Turn::moved : Turn::waits;
  }
  auto const sent = sends_.send(s);
  return sent == Turn::waits && moved ? Turn::moved : sent;
}

bool SharedCall::may_start(Step const& step) const {
  for (auto const before : step.after)
    if (!progress_[before].started || progress_[before].moved != steps_[before].bytes) return false;
  for (auto const& name : step.overwrites)
    if (!channels_.is_read(name)) return false;
  for (auto const& operand : step.operands)
    if (operand.message && !channels_.is_next_to_receive(*operand.message)) return false;
  return true;
}

SharedCall::Turn SharedCall::look_for_operands(Step const& step) {
  for (auto const& operand : step.operands) {
    if (!operand.message) continue;
    auto& lane = channels_.lane(operand.message->channel);
    auto const arrived = lane.arrived(step.bytes);
    if (arrived.wrong) return wrong(lane, step.bytes);
    if (arrived.bytes == 0) {
      awaited_ = &lane;
      return Turn::waits;
    }
  }
  return Turn::moved;
}

SharedCall::Turn SharedCall::wrong(SharedLane const& lane, std::uint64_t bytes_wanted) {
  failure_ = lane.why(bytes_wanted);
  return Turn::failed;
}

SharedCall::Turn SharedCall::wrong_landing(MessageName const& name) {
  auto const peer = program_->channels[name.channel].peer;
  failure_ = {EngineErrc::protocol_error,
              "it wants message " + std::to_string(name.number + 1) + " where it has no memory, or no whole elements",
              {peer},
              {}};
  return Turn::failed;
}

SharedCall::Turn SharedCall::fold(std::uint32_t s) {
  auto const& step = steps_[s];
  auto& progress = progress_[s];
  auto const landings = sends_.landings(s);
  auto const operands = step.operands.size();
  while (progress.moved != step.bytes) {
    auto bytes = step.bytes - progress.moved;
    bool landed = false;
    for (std::size_t k = 0; k < operands; ++k) {
      auto const& operand = step.operands[k];
      if (operand.message) {
        auto& lane = channels_.lane(operand.message->channel);
        auto const arrived = lane.arrived(step.bytes - progress.moved);
        if (arrived.wrong || arrived.bytes % element_bytes_ != 0) return wrong(lane, step.bytes - progress.moved);
        if (arrived.bytes == 0) return Turn::waits;
        if (arrived.data == nullptr && !step.may_land) return wrong(lane, step.bytes - progress.moved);
        landed = arrived.data == nullptr;
        bytes = std::min(bytes, arrived.bytes);
        sources_[k] = arrived.data;
      } else {
        sources_[k] = buffers_.locate(operand.local, progress.cursors[k], bytes);
      }
    }
    for (std::size_t k = 0; k < step.sends.size(); ++k) {
      auto const& [lands, left] = landings[k];
      if (!lands) continue;
      bool const is_right = !left.is_wrong() && left.here() % element_bytes_ == 0;
      if (!is_right || !is_aligned(left.data(), element_bytes_)) return wrong_landing(step.sends[k]);
      bytes = std::min(bytes, left.here());
    }
    std::size_t destinations = 0;
    for (std::size_t d = 0; d < step.destinations.size(); ++d)
      destinations_[destinations++] = buffers_.locate(step.destinations[d], progress.cursors[operands + d], bytes);
    if (landed) {
      sources_[0] = destinations_[0];
      destinations = 0;
    }
    for (auto const& [lands, left] : landings)
      if (lands) destinations_[destinations++] = left.data();

    if (destinations != 0) combine(step, bytes, destinations);
    progress.moved += bytes;
    for (auto& [lands, left] : landings)
      if (lands) left.advance(bytes);
    for (std::size_t k = 0; k < operands; ++k) {
      auto const& operand = step.operands[k];
      if (operand.message)
        channels_.take(operand.message->channel, bytes, progress.moved == step.bytes);
      else
        progress.cursors[k].advance(operand.local, bytes);
    }
    for (std::size_t d = 0; d < step.destinations.size(); ++d)
      progress.cursors[operands + d].advance(step.destinations[d], bytes);
  }
  return Turn::done;
}

bool SharedCall::fold_whole(Step const& step) {
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    auto const& operand = step.operands[k];
    if (operand.message) {
      auto const& arrived = channels_.lane(operand.message->channel).at_hand();
      if (arrived.bytes != step.bytes || arrived.data == nullptr) return false;
      sources_[k] = arrived.data;
    } else {
      sources_[k] = buffers_.base(operand.local.pieces[0].buffer) + operand.local.pieces[0].at;
    }
  }
  for (std::size_t d = 0; d < step.destinations.size(); ++d)
    destinations_[d] = buffers_.base(step.destinations[d].pieces[0].buffer) + step.destinations[d].pieces[0].at;
  combine(step, step.bytes, step.destinations.size());
  for (auto const& operand : step.operands)
    if (operand.message) channels_.take(operand.message->channel, step.bytes, true);
  return true;
}

std::vector<SharedCall::Awaited> SharedCall::awaited() const {
  std::vector<Awaited> result;
  auto const wait_for = [&](std::uint32_t c, std::string where) {
    result.push_back({program_->channels[c].peer, std::move(where)});
  };
  if (pending_.empty()) {
    for (std::uint32_t c = 0; c < channels_.size(); ++c)
      if (!channels_.is_all_read(c)) wait_for(c, "reading what was sent");
    return result;
  }
  for (auto const s : pending_) {
    for (auto const& operand : steps_[s].operands)
      if (operand.message && channels_.lane(operand.message->channel).arrived(steps_[s].bytes).bytes == 0)
        wait_for(operand.message->channel, "receiving message " + std::to_string(operand.message->number + 1) + " of " +
                                               std::to_string(program_->channels[operand.message->channel].receives));
    for (auto const& name : steps_[s].overwrites)
      if (!channels_.is_read(name)) wait_for(name.channel, "reading what was sent");
    bool const sends = steps_[s].destinations.empty() || progress_[s].moved == steps_[s].bytes;
    if (progress_[s].started && sends)
      for (auto const& name : sends_.unsent(s)) wait_for(name.channel, "taking what is sent");
  }
  return result;
}

}  // namespace chorus::engine
