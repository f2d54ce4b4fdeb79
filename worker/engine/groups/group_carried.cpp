// Calls of a group whose data travels in another form than the tensors': see Carried.
#include <algorithm>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/engine/groups/group_calls.hpp"

namespace chorus {
namespace {

constexpr std::uint64_t gpu_alignment = 256;

}  // namespace

// The residual of another number of elements is not used, and replaced if the call succeeds.
engine::Feedback Group::feedback_of(std::string const& name, std::uint64_t elements) {
  lost_.resize(elements);
  auto const found = residuals_.find(name);
  bool const fits = found != residuals_.end() && found->second.size() == elements;
  return {fits ? std::span<float const>(found->second) : std::span<float const>(), lost_};
}

engine::RunResult Group::run_carried(Prepared& prepared, Request const& request, std::span<std::byte const> input,
                                     std::span<std::byte> output) {
  auto const& carried = *prepared.carried;
  auto* const gpu = request.options.gpu;
  auto const input_bytes = carried.bytes(input.size()), output_bytes = carried.bytes(output.size());
  bool const is_one_buffer = !input.empty() && input.data() == output.data();
  std::shared_ptr<devices::GpuMemory> there;
  std::span<std::byte> all, in;
  if (auto* const unit = carried.place(gpu); unit != nullptr) {
    auto const input_at = is_one_buffer ? 0 : (output_bytes + gpu_alignment - 1) / gpu_alignment * gpu_alignment;
    auto acquired = unit->acquire(std::max(input_at + input_bytes, output_bytes));
    if (acquired.has_error()) return failed(acquired.error());
    there = std::move(*acquired);
    all = there->bytes();
    in = all.subspan(input_at, input_bytes);
  } else {
    all = carried_output_.take(is_one_buffer ? std::max(input_bytes, output_bytes) : output_bytes);
    in = is_one_buffer ? all.first(input_bytes) : carried_input_.take(input_bytes);
  }
  auto const out = all.first(output_bytes);
  auto const& name = request.options.error_feedback;
  bool const keeps = !name.empty() && !input.empty();
  auto const feedback = keeps ? feedback_of(name, input.size() / element_bytes(prepared.dtype)) : engine::Feedback();
  if (auto const widened = carried.before(in, input, gpu, feedback); widened.has_error())
    return failed(widened.error());
  auto result = run_as_it_is(prepared, request, in, out);
  if (result.status.has_value()) result.status = carried.after(output, out, gpu);
  if (result.status.has_value() && keeps) residuals_[name].swap(lost_);
  return result;
}

engine::RunResult Group::run_carried_in_pieces(Prepared& prepared, Request const& request,
                                               std::span<std::byte const> input,
                                               std::span<std::span<std::byte> const> pieces) {
  auto const& carried = *prepared.carried;
  if (carried.is_compressed()) return run_compressed_in_pieces(prepared, request, input, pieces);
  std::uint64_t bytes = 0;
  for (auto const& piece : pieces) bytes += piece.size();
  auto const whole = carried_output_.take(carried.bytes(bytes));
  auto in = whole;
  if (!request.options.in_place) {
    in = carried_input_.take(carried.bytes(input.size()));
    if (auto const widened = carried.before(in, input, nullptr); widened.has_error()) return failed(widened.error());
  }
  // Used for the pieces that a member contributes, and for those that it gets.
  auto const for_each_piece = [&](auto use) {
    std::uint64_t at = 0;
    for (auto const& piece : pieces) {
      use(whole.subspan(carried.bytes(at), carried.bytes(piece.size())), piece);
      at += piece.size();
    }
  };
  bool const brings = !prepared.program->input.empty(), gets = !prepared.program->output.empty();
  if (request.options.in_place && brings)
    for_each_piece([&](auto wide, auto piece) { static_cast<void>(carried.before(wide, piece, nullptr)); });
  auto result =
      run_as_it_is(prepared, request, brings ? in : std::span<std::byte>(), gets ? whole : std::span<std::byte>());
  if (result.status.has_value() && gets)
    for_each_piece([&](auto wide, auto piece) { static_cast<void>(carried.after(piece, wide, nullptr)); });
  return result;
}

// Codes belong to blocks of elements, which may begin in one piece and end in another.
engine::RunResult Group::run_compressed_in_pieces(Prepared& prepared, Request const& request,
                                                  std::span<std::byte const> input,
                                                  std::span<std::span<std::byte> const> pieces) {
  std::uint64_t bytes = 0;
  for (auto const& piece : pieces) bytes += piece.size();
  auto const whole = packed_.take(bytes);
  bool const brings = !prepared.program->input.empty(), gets = !prepared.program->output.empty();
  std::uint64_t at = 0;
  if (request.options.in_place && brings)
    for (auto const& piece : pieces) {
      std::ranges::copy(piece, whole.subspan(at).begin());
      at += piece.size();
    }
  auto const in = request.options.in_place ? std::span<std::byte const>(whole) : input;
  auto result =
      run_carried(prepared, request, brings ? in : std::span<std::byte const>(), gets ? whole : std::span<std::byte>());
  if (result.status.has_error() || !gets) return result;
  at = 0;
  for (auto const& piece : pieces) {
    std::ranges::copy(whole.subspan(at, piece.size()), piece.begin());
    at += piece.size();
  }
  return result;
}

}  // namespace chorus
