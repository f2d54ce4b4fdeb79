#include "worker/engine/groups/compressed.hpp"

#include <string>

#include "collectives/core/errc.hpp"
#include "collectives/plan/sizes/codes.hpp"
#include "worker/devices/cuda/gpus.hpp"

namespace chorus::engine {
namespace {

bool adds_at_one_place(plan::Algorithm const& algorithm, plan::Spec const& spec) {
  return algorithm.in_worker_order != nullptr && algorithm.in_worker_order(spec);
}

}  // namespace

Status check_compression(Compression const& compression, ReduceOp reduce, Dtype dtype, plan::Algorithm const& algorithm,
                         plan::Spec const& spec) {
  auto const refused = [&](std::string const& why) {
    return Error(PlanErrc::unsupported_operation, "compression " + to_string(compression) + ": " + why);
  };
  if (!can_be_compressed(spec.op)) return refused(plan::has_no_codes(spec.op));
  if (!plan::has_codes(dtype, compression))
    return refused(std::string(name(dtype)) + " has no such codes; " + std::string(plan::formats_of(compression)));
  if (!reduces(spec.op)) return ok();
  if (!plan::has_bound(reduce)) return refused(plan::has_no_bound(reduce));
  if (compression.between) return ok();
  if (!adds_at_one_place(algorithm, spec))
    return refused(spec.algorithm + " does not add every element at one place in the order of the workers, as " +
                   (spec.op == Op::all_reduce ? "allpairs, mesh and centralized do" : "direct and centralized do"));
  return ok();
}

std::optional<WireFormat> codes_between(std::optional<Compression> const& compression, plan::Program const& program) {
  if (!compression || !compression->between || program.coded_from == plan::no_codes) return std::nullopt;
  return compression->format;
}

Compressed::Compressed(WireFormat format, Dtype dtype, plan::Spec const& spec, plan::Sizes const& sizes)
    : format_(format), dtype_(dtype), codec_(format, dtype), element_bytes_(element_bytes(dtype)) {
  if (!has_blocks(spec.op)) {
    sizes_.elements = carriers(format_, sizes.elements);
    return;
  }
  blocks_ = plan::blocks_of(spec.op, spec.ranks, sizes);
  for (auto const elements : blocks_) {
    whole_bytes_ += elements * element_bytes_;
    sizes_.counts.push_back(carriers(format_, elements));
  }
}

template <class Use>
void Compressed::for_each_part(std::uint64_t buffer_bytes, Use use) const {
  if (blocks_.empty() || !is_whole(buffer_bytes))
    return use(std::uint64_t{0}, buffer_bytes, std::uint64_t{0}, codec_.bytes(buffer_bytes / element_bytes_));
  std::uint64_t at = 0, codes_at = 0;
  for (auto const elements : blocks_) {
    auto const bytes = elements * element_bytes_, codes = codec_.bytes(elements);
    use(at, bytes, codes_at, codes);
    at += bytes;
    codes_at += codes;
  }
}

std::uint64_t Compressed::bytes(std::uint64_t buffer_bytes) const {
  std::uint64_t all = 0;
  for_each_part(buffer_bytes, [&](auto, auto, auto, std::uint64_t codes) { all += codes; });
  return all;
}

Status Compressed::encode(std::span<std::byte> codes, std::span<std::byte const> elements, devices::GpuUnit* gpu,
                          Feedback feedback) const {
  std::vector<std::byte> here;
  if (gpu != nullptr && !elements.empty()) {
    if (feedback.lost.empty()) return encode_there(codes, elements, *gpu);
    here.resize(elements.size());
    if (auto const downloaded = gpu->download(here, elements.data()); !downloaded) return downloaded;
    elements = here;
  }
  for_each_part(elements.size(), [&](auto at, auto bytes, auto codes_at, auto codes_bytes) {
    auto const to = codes.subspan(codes_at, codes_bytes);
    auto const from = elements.subspan(at, bytes);
    if (feedback.lost.empty()) return codec_.encode(to, from);
    auto const first = at / element_bytes_, count = bytes / element_bytes_;
    auto const residual = feedback.residual.empty() ? feedback.residual : feedback.residual.subspan(first, count);
    codec_.encode(to, from, residual, feedback.lost.subspan(first, count));
  });
  return ok();
}

Status Compressed::encode_there(std::span<std::byte> codes, std::span<std::byte const> elements,
                                devices::GpuUnit& gpu) const {
  auto const there = gpu.acquire(codes.size());
  if (!there) return there.error();
  auto* const codes_there = (*there)->bytes().data();
  if (auto const encoded = gpu.code(orders(false, codes_there, elements.data(), elements.size())); !encoded)
    return encoded;
  return gpu.download(codes, codes_there);
}

Status Compressed::decode(std::span<std::byte> elements, std::span<std::byte const> codes,
                          devices::GpuUnit* gpu) const {
  if (gpu != nullptr && !elements.empty()) {
    auto const there = gpu->acquire(codes.size());
    if (!there) return there.error();
    auto* const codes_there = (*there)->bytes().data();
    if (auto const uploaded = gpu->upload(codes_there, codes); !uploaded) return uploaded;
    return gpu->code(orders(true, elements.data(), codes_there, elements.size()));
  }
  for_each_part(elements.size(), [&](auto at, auto bytes, auto codes_at, auto codes_bytes) {
    codec_.decode(elements.subspan(at, bytes), codes.subspan(codes_at, codes_bytes));
  });
  return ok();
}

std::vector<devices::CodeOrder> Compressed::orders(bool decodes, std::byte* to, std::byte const* from,
                                                   std::uint64_t buffer_bytes) const {
  std::vector<devices::CodeOrder> orders;
  for_each_part(buffer_bytes, [&](auto at, auto bytes, auto codes_at, auto) {
    orders.push_back({format_, dtype_, decodes, to + (decodes ? at : codes_at), from + (decodes ? codes_at : at),
                      bytes / element_bytes_});
  });
  return orders;
}

}  // namespace chorus::engine
