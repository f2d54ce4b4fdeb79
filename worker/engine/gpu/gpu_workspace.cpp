#include "worker/engine/gpu/gpu_workspace.hpp"

#include <array>

namespace chorus::engine {

using devices::GpuSession;
using plan::Opcode;

namespace {

constexpr std::uint64_t alignment = 256;
// No limit for partial sums: kernels are queued long before they run, so the sender would wait for them every time. The
// memory is GPU memory that is reserved before the run begins.
constexpr PartialsLimit whole_partials;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

GpuWorkspace::GpuWorkspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes,
                           std::span<std::byte const> input, std::span<std::byte> output)
    : Ranges(program, dtype, sizes, whole_partials, input, output),
      dtype_(dtype),
      reduce_(reduce),
      reductions_(program, dtype, reduce) {}

std::uint64_t GpuWorkspace::own_bytes() const {
  auto const own = Ranges::own_bytes();
  return aligned(own.scratch) + own.partials;
}

void GpuWorkspace::lie_in(std::byte* own) { Ranges::lie_in({own, own + aligned(Ranges::own_bytes().scratch)}); }

Status GpuWorkspace::copy_in(GpuSession& session, std::uint32_t i, std::byte const* from, std::uint64_t bytes) {
  while (bytes != 0) {
    auto const dst = destination(i, bytes);
    if (auto const queued = session.copy(devices::Lane::in, dst.data(), from, dst.size()); !queued) return queued;
    skip_destination(i, dst.size());
    from += dst.size();
    bytes -= dst.size();
  }
  return ok();
}

Status GpuWorkspace::take_in(GpuSession& session, std::uint32_t i, std::byte const* received, std::uint64_t bytes,
                             Sharers* sharers) {
  while (bytes != 0) {
    auto dst = destination(i, bytes);
    std::byte const* operand = nullptr;
    if (program().instructions[i].op == Opcode::recv_reduce) {
      auto const accumulated = source(i, dst.size());
      operand = accumulated.data();
      dst = dst.first(accumulated.size());
    }
    if (auto const queued = compute(session, i, dst, operand, received, sharers); !queued) return queued;
    if (operand != nullptr) skip_source(i, dst.size());
    skip_destination(i, dst.size());
    received += dst.size();
    bytes -= dst.size();
  }
  return ok();
}

Status GpuWorkspace::work(GpuSession& session, std::uint32_t i, std::uint64_t bytes) {
  while (bytes != 0) {
    auto dst = destination(i, bytes);
    auto const other = source(i, dst.size());
    dst = dst.first(other.size());
    auto const* const operand = program().instructions[i].op == Opcode::reduce ? dst.data() : nullptr;
    if (auto const queued = compute(session, i, dst, operand, other.data()); !queued) return queued;
    skip_source(i, dst.size());
    skip_destination(i, dst.size());
    bytes -= dst.size();
  }
  return ok();
}

std::span<std::byte const> GpuWorkspace::pass_source(std::uint32_t i, std::uint64_t limit) {
  auto const passed = source(i, limit);
  skip_source(i, passed.size());
  return passed;
}

std::span<std::byte> GpuWorkspace::pass_destination(std::uint32_t i, std::uint64_t limit) {
  auto const passed = destination(i, limit);
  skip_destination(i, passed.size());
  return passed;
}

Status GpuWorkspace::copy_out(GpuSession& session, devices::Lane lane, std::uint32_t i, std::byte* to,
                              std::uint64_t bytes) {
  while (bytes != 0) {
    auto const src = source(i, bytes);
    if (auto const queued = session.copy(lane, to, src.data(), src.size()); !queued) return queued;
    skip_source(i, src.size());
    to += src.size();
    bytes -= src.size();
  }
  return ok();
}

Status GpuWorkspace::compute(GpuSession& session, std::uint32_t i, std::span<std::byte> dst, std::byte const* operand,
                             std::byte const* other, Sharers* sharers) {
  auto const reduction = reductions_.of(i, {operand, other, dst.data(), partial(i).at});
  auto* const result = reduction.result;
  if (reduction.only_moves)
    return result == other ? ok() : session.copy(devices::Lane::compute, result, other, dst.size());
  std::array<std::byte*, 1 + Sharers::places_max> places{result};
  bool const is_shared = sharers != nullptr && program().instructions[i].is_final() && !reduction.how.wide_results;
  auto const others = is_shared ? sharers->places_for(dst, std::span(places).subspan(1)) : 0;
  return session.fold(
      reduce_, dtype_,
      {reduction.sources.data(), reduction.source_count, places.data(), 1 + others, dst.size() / element_bytes()},
      reduction.how);
}

}  // namespace chorus::engine
