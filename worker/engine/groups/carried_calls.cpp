#include "worker/engine/groups/carried_calls.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "worker/devices/cuda/gpus.hpp"

namespace chorus::engine {
namespace {

constexpr std::uint64_t gpu_alignment = 256;

}  // namespace

std::uint64_t CarriedCalls::Pieces::bytes() const {
  std::uint64_t bytes = 0;
  for (auto const& piece : pieces) bytes += piece.size();
  return bytes;
}

// The residual of another number of elements is not used, and replaced if the call succeeds.
Feedback CarriedCalls::feedback_of(std::string const& name, std::uint64_t elements) {
  lost_.resize(elements);
  auto const found = residuals_.find(name);
  bool const fits = found != residuals_.end() && found->second.size() == elements;
  return {fits ? std::span<float const>(found->second) : std::span<float const>(), lost_};
}

RunResult CarriedCalls::run(Call const& call, std::span<std::byte const> input, std::span<std::byte> output,
                            Run const& run) {
  auto const& carried = call.carried;
  auto const input_bytes = carried.bytes(input.size()), output_bytes = carried.bytes(output.size());
  bool const is_one_buffer = !input.empty() && input.data() == output.data();
  std::shared_ptr<devices::GpuMemory> there;
  std::span<std::byte> all, in;
  if (auto* const unit = carried.place(call.gpu); unit != nullptr) {
    auto const input_at = is_one_buffer ? 0 : (output_bytes + gpu_alignment - 1) / gpu_alignment * gpu_alignment;
    auto acquired = unit->acquire(std::max(input_at + input_bytes, output_bytes));
    if (acquired.has_error()) return failed(acquired.error());
    there = std::move(*acquired);
    all = there->bytes();
    in = all.subspan(input_at, input_bytes);
  } else {
    all = output_.take(is_one_buffer ? std::max(input_bytes, output_bytes) : output_bytes);
    in = is_one_buffer ? all.first(input_bytes) : input_.take(input_bytes);
  }
  auto const out = all.first(output_bytes);
  bool const keeps = !call.error_feedback.empty() && !input.empty();
  auto const feedback = keeps ? feedback_of(call.error_feedback, input.size() / element_bytes(call.dtype)) : Feedback();
  if (auto const widened = carried.before(in, input, call.gpu, feedback); widened.has_error())
    return failed(widened.error());
  auto result = run(in, out);
  if (result.status.has_value()) result.status = carried.after(output, out, call.gpu);
  if (result.status.has_value() && keeps) residuals_[call.error_feedback].swap(lost_);
  return result;
}

RunResult CarriedCalls::run_in_pieces(Call const& call, Pieces const& pieces, Run const& run) {
  auto const& carried = call.carried;
  if (carried.is_compressed()) return run_compressed_in_pieces(call, pieces, run);
  auto const whole = output_.take(carried.bytes(pieces.bytes()));
  auto in = whole;
  if (!pieces.in_place) {
    in = input_.take(carried.bytes(pieces.input.size()));
    if (auto const widened = carried.before(in, pieces.input, nullptr); widened.has_error())
      return failed(widened.error());
  }
  // Used for the pieces that a member contributes, and for those that it gets.
  auto const for_each_piece = [&](auto use) {
    std::uint64_t at = 0;
    for (auto const& piece : pieces.pieces) {
      use(whole.subspan(carried.bytes(at), carried.bytes(piece.size())), piece);
      at += piece.size();
    }
  };
  if (pieces.in_place && pieces.brings)
    for_each_piece([&](auto wide, auto piece) { static_cast<void>(carried.before(wide, piece, nullptr)); });
  auto result = run(pieces.brings ? in : std::span<std::byte const>(), pieces.gets ? whole : std::span<std::byte>());
  if (result.status.has_value() && pieces.gets)
    for_each_piece([&](auto wide, auto piece) { static_cast<void>(carried.after(piece, wide, nullptr)); });
  return result;
}

// Codes belong to blocks of elements, which may begin in one piece and end in another.
RunResult CarriedCalls::run_compressed_in_pieces(Call const& call, Pieces const& pieces, Run const& run) {
  auto const whole = packed_.take(pieces.bytes());
  std::uint64_t at = 0;
  if (pieces.in_place && pieces.brings)
    for (auto const& piece : pieces.pieces) {
      std::ranges::copy(piece, whole.subspan(at).begin());
      at += piece.size();
    }
  auto const in = pieces.in_place ? std::span<std::byte const>(whole) : pieces.input;
  auto result = this->run(call, pieces.brings ? in : std::span<std::byte const>(),
                          pieces.gets ? whole : std::span<std::byte>(), run);
  if (result.status.has_error() || !pieces.gets) return result;
  at = 0;
  for (auto const& piece : pieces.pieces) {
    std::ranges::copy(whole.subspan(at, piece.size()), piece.begin());
    at += piece.size();
  }
  return result;
}

}  // namespace chorus::engine
