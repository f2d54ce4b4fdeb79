#include "metrics/families/gpu_families.hpp"

namespace chorus::metrics {

Families gpu_families(std::span<GpuState const> gpus) {
  auto lost = make_family(Id::gpu_lost);
  auto copied = make_family(Id::gpu_copied_bytes);
  auto busy = make_family(Id::gpu_busy);
  auto kernels = make_family(Id::gpu_kernels);
  auto stepped = make_family(Id::gpu_stepped_bytes);
  auto arena = make_family(Id::gpu_arena);
  auto arena_used = make_family(Id::gpu_arena_used);
  auto pinned = make_family(Id::gpu_pinned);
  auto pinned_limit = make_family(Id::gpu_pinned_limit);
  for (auto const& gpu : gpus) {
    add_value(lost, Id::gpu_lost, {gpu.device}, gpu.is_lost ? 1 : 0);
    add_value(copied, Id::gpu_copied_bytes, {gpu.device, "in"}, static_cast<double>(gpu.in_bytes));
    add_value(copied, Id::gpu_copied_bytes, {gpu.device, "out"}, static_cast<double>(gpu.out_bytes));
    add_value(copied, Id::gpu_copied_bytes, {gpu.device, "peer"}, static_cast<double>(gpu.peer_bytes));
    add_value(copied, Id::gpu_copied_bytes, {gpu.device, "nccl"}, static_cast<double>(gpu.nccl_bytes));
    add_value(busy, Id::gpu_busy, {gpu.device, "in"}, gpu.in_seconds);
    add_value(busy, Id::gpu_busy, {gpu.device, "compute"}, gpu.compute_seconds);
    add_value(busy, Id::gpu_busy, {gpu.device, "out"}, gpu.out_seconds);
    add_value(kernels, Id::gpu_kernels, {gpu.device}, static_cast<double>(gpu.kernels));
    add_value(stepped, Id::gpu_stepped_bytes, {gpu.device}, static_cast<double>(gpu.stepped_bytes));
    add_value(arena, Id::gpu_arena, {gpu.device}, static_cast<double>(gpu.arena_bytes));
    add_value(arena_used, Id::gpu_arena_used, {gpu.device}, static_cast<double>(gpu.arena_used_bytes));
    add_value(pinned, Id::gpu_pinned, {gpu.device}, static_cast<double>(gpu.pinned_bytes));
    add_value(pinned_limit, Id::gpu_pinned_limit, {gpu.device}, static_cast<double>(gpu.pinned_limit_bytes));
  }
  Families families;
  for (auto* family : {&lost, &copied, &busy, &kernels, &stepped, &arena, &arena_used, &pinned, &pinned_limit})
    families.push_back(std::move(*family));
  return families;
}

}  // namespace chorus::metrics
