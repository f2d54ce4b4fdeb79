#include "worker/engine/shm/shared_call.hpp"

#include <algorithm>
#include <numeric>

#include "collectives/core/assert.hpp"
#include "worker/engine/trace/run_identity.hpp"

namespace chorus::engine {
namespace {

using plan::Buffer;

// Several, because the buckets of one list may look alike.
constexpr std::size_t lists_max = 16;

std::uint32_t folded(std::uint64_t hash) { return static_cast<std::uint32_t>(hash ^ (hash >> 32)); }

}  // namespace

Result<std::unique_ptr<SharedCall>> SharedCall::make(std::shared_ptr<plan::Program const> program,
                                                     plan::Sizes const& sizes, Dtype dtype, ReduceOp reduce,
                                                     std::uint64_t fingerprint, memory::Arena& arena) {
  std::unique_ptr<SharedCall> call(new SharedCall(std::move(program), sizes, dtype, reduce, fingerprint, arena));
  if (auto ready = call->prepare_memory(); ready.has_error()) return ready.error();
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
      wide_bytes_(chorus::wide_bytes(dtype)),
      arithmetic_(*program_, reduce, dtype),
      arena_(arena),
      steps_(to_steps(*program_, addresses_, dtype)),
      whole_(folds_in_one_piece(steps_)),
      exchange_(to_exchange(steps_)),
      largest_message_(largest_message(steps_)),
      cuts_(cuts_of(steps_)),
      channels_(program_->channels.size()) {
  auto const totals = addresses_.total_bytes();
  std::vector<std::vector<std::uint64_t>> sent(channels_.size()), received(channels_.size());
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    sent[c].resize(program_->channels[c].sends);
    received[c].resize(program_->channels[c].receives);
  }
  for (std::size_t i = 0; i < totals.size(); ++i) {
    auto const& instruction = program_->instructions[i];
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      if (program_->channels[c].peer != instruction.peer) continue;
      if (instruction.op == plan::Opcode::send) sent[c][instruction.message] = totals[i];
      if (instruction.receives()) received[c][instruction.message] = totals[i];
    }
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    auto const& channel = program_->channels[c];
    channels_[c].sends_agreement = folded(fingerprint ^ channel_digest(channel.send_digest, sent[c]));
    channels_[c].receives_agreement = folded(fingerprint ^ channel_digest(channel.receive_digest, received[c]));
    channels_[c].referred.resize(channel.sends);
  }
  prepare_progress();
}

SharedCall::~SharedCall() {
  if (!scratch_.empty()) arena_.free(scratch_.data());
}

Status SharedCall::prepare_memory() {
  if (auto const bytes = addresses_.scratch_bytes(); bytes != 0) {
    auto scratch = arena_.allocate(bytes);
    if (scratch.has_error()) return scratch.error();
    scratch_ = *scratch;
    shared_scratch_ = arena_.offset_of(scratch_);
  }
  auto const keeps_wide = [&](Buffer buffer) {
    return std::any_of(steps_.begin(), steps_.end(), [&](Step const& step) {
      return std::any_of(step.destinations.begin(), step.destinations.end(), [&](Range const& range) {
        return range.wide && !range.pieces.empty() && range.pieces[0].buffer == buffer;
      });
    });
  };
  auto const f32_for = [&](std::uint64_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(bytes / element_bytes_ * wide_bytes_);
  };
  if (keeps_wide(Buffer::output)) wide_output_ = f32_for(addresses_.output_bytes());
  if (keeps_wide(Buffer::scratch)) wide_scratch_ = f32_for(addresses_.scratch_bytes());
  return ok();
}

void SharedCall::prepare_progress() {
  std::size_t sources = 1, destinations = 1;
  for (auto const& step : steps_) {
    Progress progress;
    progress.cursors.resize(step.operands.size() + step.destinations.size() + 1);
    progress.landings.resize(step.sends.size());
    sources = std::max(sources, step.operands.size());
    destinations = std::max(destinations, step.destinations.size() + step.sends.size());
    progress_.push_back(std::move(progress));
  }
  sources_.resize(sources);
  arithmetic_.make_room(sources);
  destinations_.resize(destinations);
  order_.resize(steps_.size());
}

std::byte* SharedCall::base(Buffer buffer, bool wide) const {
  switch (buffer) {
    case Buffer::output:
      return wide ? wide_output_.get() : output_;
    case Buffer::scratch:
      return wide ? wide_scratch_.get() : scratch_.data();
    case Buffer::input:
      break;
  }
  return const_cast<std::byte*>(input_);  // never written: no destination is in the input
}

std::byte* SharedCall::locate(Buffer buffer, std::uint64_t offset, std::uint64_t& bytes) const {
  return is_in_pieces(buffer) ? pieces_->locate(offset, bytes) : base(buffer, false) + offset;
}

std::optional<std::uint64_t> SharedCall::shared_base(Buffer buffer) const {
  return buffer == Buffer::input ? shared_input_ : buffer == Buffer::output ? shared_output_ : shared_scratch_;
}

void SharedCall::begin(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes,
                       std::span<std::byte const> input, std::span<std::byte> output) {
  pieces_ = nullptr;
  input_ = input.data();
  output_ = output.data();
  bool const refers = refers_to_memory(lanes);
  moves_whole_ = !refers;
  shared_input_ = refers ? arena_.offset_of(input) : std::nullopt;
  shared_output_ = refers ? arena_.offset_of(output) : std::nullopt;
  may_be_written_ = shared_output_ && arena_.has_own_pages(output) && is_aligned(output.data(), element_bytes_);
  start(call, lanes);
}

void SharedCall::begin_in_pieces(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes,
                                 std::span<std::byte const> input, std::span<std::span<std::byte> const> pieces) {
  pieces_ = &list_of(pieces);
  input_ = input.data();
  output_ = nullptr;
  shared_input_ = arena_.offset_of(input);
  shared_output_ = std::nullopt;
  may_be_written_ = pieces_->may_be_written();
  moves_whole_ = false;
  start(call, lanes);
}

PieceList& SharedCall::list_of(std::span<std::span<std::byte> const> pieces) {
  auto const found = std::ranges::find_if(lists_, [&](auto const& list) { return list->is_of(pieces); });
  if (found != lists_.end()) {
    std::rotate(lists_.begin(), found, found + 1);
  } else {
    // Destroying a list changes the arena, so stale lists are removed first, all at once.
    std::erase_if(lists_, [](auto const& list) { return !list->holds(); });
    if (lists_.size() == lists_max) lists_.pop_back();
    lists_.insert(lists_.begin(), std::make_unique<PieceList>(pieces, cuts_, element_bytes_, arena_));
  }
  return *lists_.front();
}

bool SharedCall::refers_to_memory(std::span<std::unique_ptr<SharedLane> const> lanes) const {
  return !channels_.empty() && largest_message_ > lanes[program_->channels[0].peer]->inside_max();
}

void SharedCall::start(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes) {
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    auto& channel = channels_[c];
    channel.lane = lanes[program_->channels[c].peer].get();
    channel.lane->begin(call, channel.sends_agreement, channel.receives_agreement);
    channel.first_sent = channel.lane->messages_sent;
    channel.first_received = channel.lane->messages_received;
  }
  has_offered_ = false;
  instructions_done_ = 0;
  bytes_sent_ = bytes_received_ = 0;
  arithmetic_.start_over();
  exchanges_now_ = exchange_ && moves_whole_;
  exchanged_ = 0;
  if (exchanges_now_) return;
  rewind_steps();
  if (may_be_written_) offer_landings();
}

void SharedCall::rewind_steps() {
  for (auto& progress : progress_) {
    progress.started = false;
    progress.moved = 0;
    progress.sends_done = 0;
  }
  pending_ = order_;
  std::iota(pending_.begin(), pending_.end(), 0);
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
  if (kept == 0 && all_consumed()) return Turn::done;
  return moved ? Turn::moved : Turn::waits;
}

bool SharedCall::all_consumed() {
  return std::all_of(channels_.begin(), channels_.end(),
                     [](Channel& channel) { return channel.lane->has_consumed(channel.lane->referred()); });
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
        std::fill(progress.cursors.begin(), progress.cursors.end(), Cursor{});
        std::fill(progress.landings.begin(), progress.landings.end(), Landed{});
        find_landings(step, progress);
      }
    }
    // Messages without bytes are counted but never sent.
    if (step.bytes == 0)
      for (auto const& operand : step.operands)
        if (operand.message) ++channels_[operand.message->channel].lane->messages_received;
    progress.started = true;
    moved = true;
  }
  if (!step.destinations.empty() && progress.moved != step.bytes) {
    auto const before = progress.moved;
    if (auto const folded_all = fold(step, progress); folded_all == Turn::failed) return folded_all;
    moved = moved || progress.moved != before;
    if (progress.moved != step.bytes) return moved ? Turn::moved : Turn::waits;
  }
  auto const sent = send(step, progress);
  return sent == Turn::waits && moved ? Turn::moved : sent;
}

bool SharedCall::may_start(Step const& step) const {
  for (auto const before : step.after)
    if (!progress_[before].started || progress_[before].moved != steps_[before].bytes) return false;
  for (auto const& [c, number] : step.overwrites)
    if (!is_read(c, number)) return false;
  for (auto const& operand : step.operands)
    if (operand.message) {
      auto const& channel = channels_[operand.message->channel];
      if (channel.lane->messages_received != channel.first_received + operand.message->number) return false;
    }
  return true;
}

bool SharedCall::is_read(std::uint32_t c, std::uint32_t message) const {
  auto const& channel = channels_[c];
  return channel.lane->messages_sent > channel.first_sent + message &&
         channel.lane->has_consumed(channel.referred[message]);
}

SharedCall::Turn SharedCall::look_for_operands(Step const& step) {
  for (auto const& operand : step.operands) {
    if (!operand.message) continue;
    auto& lane = *channels_[operand.message->channel].lane;
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

std::byte* SharedCall::contiguous(Range const& range, Cursor const& cursor, std::uint64_t& bytes) const {
  auto const& piece = range.pieces[cursor.piece];
  bytes = std::min(bytes, piece.bytes - cursor.at);
  auto const offset = piece.at + cursor.at;
  if (range.wide) return base(piece.buffer, true) + offset / element_bytes_ * wide_bytes_;
  return locate(piece.buffer, offset, bytes);
}

SharedCall::Turn SharedCall::fold(Step const& step, Progress& progress) {
  auto const operands = step.operands.size();
  while (progress.moved != step.bytes) {
    auto bytes = step.bytes - progress.moved;
    bool landed = false;
    for (std::size_t k = 0; k < operands; ++k) {
      auto const& operand = step.operands[k];
      if (operand.message) {
        auto& lane = *channels_[operand.message->channel].lane;
        auto const arrived = lane.arrived(step.bytes - progress.moved);
        if (arrived.wrong || arrived.bytes % element_bytes_ != 0) return wrong(lane, step.bytes - progress.moved);
        if (arrived.bytes == 0) return Turn::waits;
        if (arrived.data == nullptr && !step.may_land) return wrong(lane, step.bytes - progress.moved);
        landed = arrived.data == nullptr;
        bytes = std::min(bytes, arrived.bytes);
        sources_[k] = arrived.data;
      } else {
        sources_[k] = contiguous(operand.local, progress.cursors[k], bytes);
      }
    }
    for (std::size_t k = 0; k < step.sends.size(); ++k) {
      auto const& [lands, left] = progress.landings[k];
      if (!lands) continue;
      bool const is_right = !left.is_wrong() && left.here() % element_bytes_ == 0;
      if (!is_right || !is_aligned(left.data(), element_bytes_)) return wrong_landing(step.sends[k]);
      bytes = std::min(bytes, left.here());
    }
    std::size_t destinations = 0;
    for (std::size_t d = 0; d < step.destinations.size(); ++d)
      destinations_[destinations++] = contiguous(step.destinations[d], progress.cursors[operands + d], bytes);
    if (landed) {
      sources_[0] = destinations_[0];
      destinations = 0;
    }
    for (auto const& [lands, left] : progress.landings)
      if (lands) destinations_[destinations++] = left.data();

    if (destinations != 0) combine(step, bytes, destinations);
    progress.moved += bytes;
    for (auto& [lands, left] : progress.landings)
      if (lands) left.advance(bytes);
    auto const skip = [&](Cursor& cursor, Range const& range) {
      cursor.at += bytes;
      if (cursor.at == range.pieces[cursor.piece].bytes) cursor = {cursor.piece + 1, 0};
    };
    for (std::size_t k = 0; k < operands; ++k) {
      auto const& operand = step.operands[k];
      if (!operand.message) {
        skip(progress.cursors[k], operand.local);
        continue;
      }
      auto& lane = *channels_[operand.message->channel].lane;
      lane.take(bytes);
      bytes_received_ += bytes;
      if (progress.moved == step.bytes) ++lane.messages_received;
    }
    for (std::size_t d = 0; d < step.destinations.size(); ++d)
      skip(progress.cursors[operands + d], step.destinations[d]);
  }
  return Turn::done;
}

std::vector<SharedCall::Awaited> SharedCall::awaited() const {
  std::vector<Awaited> result;
  auto const wait_for = [&](std::uint32_t c, std::string where) {
    result.push_back({program_->channels[c].peer, std::move(where)});
  };
  if (pending_.empty()) {
    for (std::uint32_t c = 0; c < channels_.size(); ++c)
      if (!channels_[c].lane->has_consumed(channels_[c].lane->referred())) wait_for(c, "reading what was sent");
    return result;
  }
  for (auto const s : pending_) {
    for (auto const& operand : steps_[s].operands)
      if (operand.message && channels_[operand.message->channel].lane->arrived(steps_[s].bytes).bytes == 0)
        wait_for(operand.message->channel, "receiving message " + std::to_string(operand.message->number + 1) + " of " +
                                               std::to_string(program_->channels[operand.message->channel].receives));
    for (auto const& [c, number] : steps_[s].overwrites)
      if (!is_read(c, number)) wait_for(c, "reading what was sent");
    bool const sends = steps_[s].destinations.empty() || progress_[s].moved == steps_[s].bytes;
    if (progress_[s].started && sends)
      for (auto k = progress_[s].sends_done; k < steps_[s].sends.size(); ++k)
        wait_for(steps_[s].sends[k].channel, "taking what is sent");
  }
  return result;
}

}  // namespace chorus::engine
