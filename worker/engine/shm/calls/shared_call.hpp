// One kind of call of a group over shared memory: prepared once, run for each such call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/engine/shm/calls/call_buffers.hpp"
#include "worker/engine/shm/calls/call_channels.hpp"
#include "worker/engine/shm/calls/exchange_call.hpp"
#include "worker/engine/shm/calls/shared_steps.hpp"
#include "worker/engine/shm/calls/step_arithmetic.hpp"
#include "worker/engine/shm/calls/step_sends.hpp"
#include "worker/engine/shm/lanes/shared_lane.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::engine {

// Runs the steps of a program on the caller's thread without waiting: turn() does what is possible now.
class SharedCall {
 public:
  // The arena outlives the call. Errors: MemoryErrc::unavailable if there is no room for the program's scratch memory.
  [[nodiscard]] static Result<std::unique_ptr<SharedCall>> make(std::shared_ptr<plan::Program const> program,
                                                                plan::Sizes const& sizes, Dtype dtype, ReduceOp reduce,
                                                                std::uint64_t fingerprint, memory::Arena& arena);
  SharedCall(SharedCall const&) = delete;
  SharedCall& operator=(SharedCall const&) = delete;

  [[nodiscard]] plan::Program const& program() const { return *program_; }
  [[nodiscard]] std::uint64_t input_bytes() const { return input_bytes_; }
  [[nodiscard]] std::uint64_t output_bytes() const { return output_bytes_; }
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }  // of the kind of call

  // Begins call number `call` of the group. `lanes`: by rank, null for the own rank. Lanes and buffers stay valid until
  // the call is done; the buffers have input_bytes() and output_bytes().
  void begin(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes, std::span<std::byte const> input,
             std::span<std::byte> output);

  // begin() with memory in several pieces, which form one buffer in the plan's eyes: it is not unpacked. Pieces hold
  // whole elements, are not empty, and have the call's size together. They are the output or, if the program is in
  // place and no input is passed, input and output; then nothing is packed either.
  void begin_in_pieces(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes,
                       std::span<std::byte const> input, std::span<std::span<std::byte> const> pieces);

  // True if the first turn sends all that the call sends, a few small records, and does nothing else.
  [[nodiscard]] bool exchanges() const { return exchanges_now_; }

  using Turn = CallTurn;
  [[nodiscard]] Turn turn();
  [[nodiscard]] Failure const& failure() const { return failure_; }  // after Turn::failed

  // A rank that the call waits for, and for what.
  struct Awaited {
    plan::Rank rank;
    std::string where;  // "receiving message 2 of 6"
  };
  [[nodiscard]] std::vector<Awaited> awaited() const;
  // True if peers may write to the output, because it was offered to them.
  [[nodiscard]] bool has_offered() const { return has_offered_; }
  // The call has failed: memory that peers may still read is not reused.
  void leave_to_peers() { buffers_.leave_to_peers(); }

  [[nodiscard]] std::uint32_t instructions_done() const { return instructions_done_; }
  [[nodiscard]] std::uint64_t bytes_sent() const { return channels_.bytes_sent(); }
  [[nodiscard]] std::uint64_t bytes_received() const { return channels_.bytes_received(); }

  // After a turn that waits: true if only one record can let the next turn move, and it has not arrived yet.
  [[nodiscard]] bool awaits_one_record() const { return awaited_ != nullptr && !awaited_->has_arrived(); }
  [[nodiscard]] Reduced const& reduced() const { return arithmetic_.reduced(); }

 private:
  struct Progress {
    bool started = false;
    std::uint64_t moved = 0;      // bytes of the result
    std::vector<Cursor> cursors;  // of the operands, then of the destinations
  };

  SharedCall(std::shared_ptr<plan::Program const> program, plan::Sizes const& sizes, Dtype dtype, ReduceOp reduce,
             std::uint64_t fingerprint, memory::Arena& arena);
  void prepare_progress();
  void start(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes);
  void rewind_steps();
  // True if a message may be too large to travel inside its record.
  [[nodiscard]] bool refers_to_memory(std::span<std::unique_ptr<SharedLane> const> lanes) const;

  [[nodiscard]] Turn exchange();
  [[nodiscard]] Turn go_on_in_parts();
  [[nodiscard]] Turn advance(std::uint32_t s);
  [[nodiscard]] bool may_start(Step const& step) const;
  [[nodiscard]] Turn look_for_operands(Step const& step);
  [[nodiscard]] Turn fold(std::uint32_t s);
  // Does the whole step at once, after look_for_operands(). False, without effect, if a message came in parts.
  [[nodiscard]] bool fold_whole(Step const& step);
  // Combines sources_ into the first of destinations_.
  void combine(Step const& step, std::uint64_t bytes, std::size_t destinations) {
    arithmetic_.combine(step, bytes, sources_, std::span(destinations_).first(destinations));
  }
  [[nodiscard]] Turn wrong(SharedLane const& lane, std::uint64_t bytes_wanted);
  [[nodiscard]] Turn wrong_landing(MessageName const& name);

  std::shared_ptr<plan::Program const> const program_;
  Addresses const addresses_;
  std::uint64_t const input_bytes_, output_bytes_, fingerprint_;
  std::size_t const element_bytes_;
  StepArithmetic arithmetic_;
  std::vector<Step> const steps_;
  std::vector<bool> const whole_;        // by step: can be done by fold_whole()
  std::uint64_t const largest_message_;  // bytes

  CallBuffers buffers_;
  CallChannels channels_;
  StepSends sends_;
  std::optional<ExchangeCall> exchange_;
  std::vector<Progress> progress_;
  std::vector<std::byte const*> sources_;
  std::vector<std::byte*> destinations_;

  // State of the current call.
  std::vector<std::uint32_t> order_;
  std::span<std::uint32_t> pending_;     // the steps of order_ that are not done, in order
  SharedLane const* awaited_ = nullptr;  // the lane whose next record alone can let a turn move
  bool moves_whole_ = false;             // every message fits into a record, and every buffer is in one piece
  bool exchanges_now_ = false;
  bool has_offered_ = false;
  std::uint32_t instructions_done_ = 0;
  Failure failure_;
};

}  // namespace chorus::engine
