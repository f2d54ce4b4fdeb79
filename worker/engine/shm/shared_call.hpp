// One kind of call of a group over shared memory: prepared once, run for each such call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "worker/engine/shm/piece_list.hpp"
#include "worker/engine/shm/shared_exchange.hpp"
#include "worker/engine/shm/shared_lane.hpp"
#include "worker/engine/shm/shared_steps.hpp"
#include "worker/engine/shm/step_arithmetic.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::engine {

// Runs the steps of a program on the caller's thread without waiting: turn() does what is possible now.
class SharedCall {
 public:
  // The arena outlives the call. Errors: MemoryErrc::unavailable if there is no room for the program's scratch memory.
  [[nodiscard]] static Result<std::unique_ptr<SharedCall>> make(std::shared_ptr<plan::Program const> program,
                                                                plan::Sizes const& sizes, Dtype dtype, ReduceOp reduce,
                                                                std::uint64_t fingerprint, memory::Arena& arena);
  ~SharedCall();
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

  enum class Turn : std::uint8_t { done, moved, waits, failed };
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
  void leave_to_peers() {
    if (pieces_ != nullptr) pieces_->stays();
  }

  [[nodiscard]] std::uint32_t instructions_done() const { return instructions_done_; }
  [[nodiscard]] std::uint64_t bytes_sent() const { return bytes_sent_; }
  [[nodiscard]] std::uint64_t bytes_received() const { return bytes_received_; }

  // After a turn that waits: true if only one record can let the next turn move, and it has not arrived yet.
  [[nodiscard]] bool awaits_one_record() const { return awaited_ != nullptr && !awaited_->has_arrived(); }
  [[nodiscard]] Reduced const& reduced() const { return arithmetic_.reduced(); }

 private:
  struct Cursor {
    std::uint32_t piece = 0;
    std::uint64_t at = 0;
  };
  // The place where a peer wants a message to be written, if it has named one.
  struct Landed {
    bool lands = false;
    PeerPieces left;
  };
  struct Progress {
    bool started = false;
    std::uint64_t moved = 0;
    std::uint32_t sends_done = 0;
    std::uint64_t sent = 0;        // bytes of the current message, 0 between messages
    std::vector<Cursor> cursors;   // of the operands, then of the destinations; of a sent range, likewise
    std::vector<Landed> landings;  // by message to send
  };
  struct Channel {
    std::uint32_t sends_agreement = 0, receives_agreement = 0;
    std::uint64_t first_sent = 0, first_received = 0;  // messages of the lane before this call
    // By sent message: number of records to be consumed before its memory may change.
    std::vector<std::uint64_t> referred;
    SharedLane* lane = nullptr;
  };

  SharedCall(std::shared_ptr<plan::Program const> program, plan::Sizes const& sizes, Dtype dtype, ReduceOp reduce,
             std::uint64_t fingerprint, memory::Arena& arena);
  Status prepare_memory();
  void prepare_progress();
  [[nodiscard]] PieceList& list_of(std::span<std::span<std::byte> const> pieces);
  void offer_landings();
  void offer_landing(Step const& step);
  void start(std::uint64_t call, std::span<std::unique_ptr<SharedLane> const> lanes);
  void rewind_steps();
  // True if a message may be too large to travel inside its record.
  [[nodiscard]] bool refers_to_memory(std::span<std::unique_ptr<SharedLane> const> lanes) const;

  // turn() for a call that has an exchange_ and moves whole.
  [[nodiscard]] Turn exchange();
  [[nodiscard]] Turn exchange_sends();
  [[nodiscard]] Turn go_on_in_parts();
  void take_whole(std::uint32_t channel, std::uint64_t bytes);

  [[nodiscard]] Turn advance(std::uint32_t s);
  [[nodiscard]] bool may_start(Step const& step) const;
  // True if the message was sent and the memory it refers to is no longer needed.
  [[nodiscard]] bool is_read(std::uint32_t channel, std::uint32_t message) const;
  [[nodiscard]] Turn look_for_operands(Step const& step);
  void find_landings(Step const& step, Progress& progress);
  // Address of the cursor in the range; reduces `bytes` to what is contiguous there.
  [[nodiscard]] std::byte* contiguous(Range const& range, Cursor const& cursor, std::uint64_t& bytes) const;
  [[nodiscard]] Turn fold(Step const& step, Progress& progress);
  // Does the whole step at once, after look_for_operands(). False, without effect, if a message came in parts.
  [[nodiscard]] bool fold_whole(Step const& step);
  // Combines sources_ into the first of destinations_.
  void combine(Step const& step, std::uint64_t bytes, std::size_t destinations) {
    arithmetic_.combine(step, bytes, sources_, std::span(destinations_).first(destinations));
  }
  [[nodiscard]] Turn send(Step const& step, Progress& progress);
  [[nodiscard]] std::uint64_t send_some(SharedLane& lane, Range const& range, Cursor& cursor) const;
  // `shared`: arena offset of the bytes, if they are in the arena.
  [[nodiscard]] static std::uint64_t send_contiguous(SharedLane& lane, std::span<std::byte const> bytes,
                                                     std::optional<std::uint64_t> shared);
  [[nodiscard]] Turn wrong(SharedLane const& lane, std::uint64_t bytes_wanted);
  [[nodiscard]] Turn wrong_landing(MessageName const& name);
  [[nodiscard]] bool all_consumed();

  [[nodiscard]] std::byte* base(plan::Buffer buffer, bool wide) const;
  // For buffers in one piece; not wide.
  [[nodiscard]] std::byte* at(Exchange::Place const& place) const { return base(place.buffer, false) + place.at; }
  // The memory at an offset of a buffer, not wide; reduces `bytes` to what is contiguous there.
  [[nodiscard]] std::byte* locate(plan::Buffer buffer, std::uint64_t offset, std::uint64_t& bytes) const;
  [[nodiscard]] std::optional<std::uint64_t> shared_base(plan::Buffer buffer) const;
  [[nodiscard]] bool is_in_pieces(plan::Buffer buffer) const {
    return pieces_ != nullptr &&
           (buffer == plan::Buffer::output || (input_ == nullptr && buffer == plan::Buffer::input));
  }

  std::shared_ptr<plan::Program const> const program_;
  Addresses const addresses_;
  std::uint64_t const input_bytes_, output_bytes_, fingerprint_;
  std::size_t const element_bytes_;
  std::size_t const wide_bytes_;  // of an element in f32
  StepArithmetic arithmetic_;
  memory::Arena& arena_;
  std::vector<Step> const steps_;
  std::vector<bool> const whole_;  // by step: can be done by fold_whole()
  std::optional<Exchange> const exchange_;
  std::uint64_t const largest_message_;  // bytes

  std::span<std::byte> scratch_;  // in the arena
  std::vector<std::uint64_t> const cuts_;
  // Programs repeat calls with the same tensors: the lists of the last calls in pieces, the last one first.
  std::vector<std::unique_ptr<PieceList>> lists_;
  std::unique_ptr<std::byte[]> wide_output_, wide_scratch_;
  std::vector<Channel> channels_;
  std::vector<Progress> progress_;
  std::vector<std::byte const*> sources_;
  std::vector<std::byte*> destinations_;

  // State of the current call.
  std::byte const* input_ = nullptr;
  std::byte* output_ = nullptr;
  PieceList* pieces_ = nullptr;                                                 // null: no buffer is in pieces
  std::optional<std::uint64_t> shared_input_, shared_output_, shared_scratch_;  // arena offsets of the buffers
  std::vector<std::uint32_t> order_;
  std::span<std::uint32_t> pending_;     // the steps of order_ that are not done, in order
  SharedLane const* awaited_ = nullptr;  // the lane whose next record alone can let a turn move
  bool moves_whole_ = false;             // every message fits into a record, and every buffer is in one piece
  bool exchanges_now_ = false;
  std::size_t exchanged_ = 0;    // messages that the exchange has sent
  bool may_be_written_ = false;  // peers may write to the output
  bool has_offered_ = false;
  std::uint32_t instructions_done_ = 0;
  std::uint64_t bytes_sent_ = 0, bytes_received_ = 0;
  Failure failure_;
};

}  // namespace chorus::engine
