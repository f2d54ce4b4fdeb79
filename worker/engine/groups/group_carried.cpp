// Calls of a group for averages whose sums travel in a wider dtype: see CarriedAverage.
#include <algorithm>

#include "worker/devices/cuda/gpus.hpp"
#include "worker/engine/groups/group_calls.hpp"

namespace chorus {
namespace {

constexpr std::uint64_t gpu_alignment = 256;

}  // namespace

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
  if (auto const widened = carried.widen(in, input, gpu); widened.has_error()) return failed(widened.error());
  auto result = run_as_it_is(prepared, request, in, out);
  if (result.status.has_value()) result.status = carried.narrow(output, out, gpu);
  return result;
}

engine::RunResult Group::run_carried_in_pieces(Prepared& prepared, Request const& request,
                                               std::span<std::byte const> input,
                                               std::span<std::span<std::byte> const> pieces) {
  auto const& carried = *prepared.carried;
  std::uint64_t bytes = 0;
  for (auto const& piece : pieces) bytes += piece.size();
  auto const whole = carried_output_.take(carried.bytes(bytes));
  auto in = whole;
  if (!request.options.in_place) {
    in = carried_input_.take(carried.bytes(input.size()));
    if (auto const widened = carried.widen(in, input, nullptr); widened.has_error()) return failed(widened.error());
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
    for_each_piece([&](auto wide, auto piece) { static_cast<void>(carried.widen(wide, piece, nullptr)); });
  auto result =
      run_as_it_is(prepared, request, brings ? in : std::span<std::byte>(), gets ? whole : std::span<std::byte>());
  if (result.status.has_value() && gets)
    for_each_piece([&](auto wide, auto piece) { static_cast<void>(carried.narrow(piece, wide, nullptr)); });
  return result;
}

}  // namespace chorus
