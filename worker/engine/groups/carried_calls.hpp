// Runs calls whose data travels in another form than the tensors' (carried.hpp), and keeps the memory for that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "worker/engine/groups/carried.hpp"
#include "worker/engine/groups/spare_memory.hpp"
#include "worker/engine/program/run_spec.hpp"

namespace chorus::engine {

// One call at a time, from any thread.
class CarriedCalls {
 public:
  // arena: for memory that other members may read; null: none. Outlives the object.
  explicit CarriedCalls(memory::Arena* arena) : input_(arena), output_(arena), packed_(nullptr) {}
  CarriedCalls(CarriedCalls const&) = delete;
  CarriedCalls& operator=(CarriedCalls const&) = delete;

  struct Call {
    Carried const& carried;
    Dtype dtype;                        // of the tensors
    devices::GpuUnit* gpu = nullptr;    // where they lie
    std::string const& error_feedback;  // CallOptions::error_feedback
  };
  // Does the call with input and output in the form in which they travel. Made of a std::cref, it allocates nothing.
  using Run = std::function<RunResult(std::span<std::byte const> input, std::span<std::byte> output)>;

  [[nodiscard]] RunResult run(Call const& call, std::span<std::byte const> input, std::span<std::byte> output,
                              Run const& run);

  // The memory is in pieces, which are the input, too, if `in_place`.
  struct Pieces {
    std::span<std::byte const> input;
    std::span<std::span<std::byte> const> pieces;
    bool in_place = false;
    bool brings = false, gets = false;  // this member has an input, and an output

    [[nodiscard]] std::uint64_t bytes() const;  // of the pieces together
  };
  [[nodiscard]] RunResult run_in_pieces(Call const& call, Pieces const& pieces, Run const& run);

 private:
  [[nodiscard]] RunResult run_compressed_in_pieces(Call const& call, Pieces const& pieces, Run const& run);
  [[nodiscard]] Feedback feedback_of(std::string const& name, std::uint64_t elements);

  SpareMemory input_, output_;
  SpareMemory packed_;                                                // of compressed calls in pieces
  std::map<std::string, std::vector<float>, std::less<>> residuals_;  // of calls with error feedback, by name
  std::vector<float> lost_;                                           // by the present call
};

}  // namespace chorus::engine
