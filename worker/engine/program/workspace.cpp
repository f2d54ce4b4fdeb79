#include "worker/engine/program/workspace.hpp"

#include <algorithm>
#include <cstring>

namespace chorus::engine {

using plan::Opcode;

namespace {

constexpr std::uint64_t decoded_units = 16;  // 16 or 32 KB, which stay in a cache

std::unique_ptr<std::byte[]> memory_of(std::uint64_t bytes) {
  return bytes != 0 ? std::make_unique_for_overwrite<std::byte[]>(bytes) : nullptr;
}

}  // namespace

Workspace::Workspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes,
                     PartialsLimit limit, std::span<std::byte const> input, std::span<std::byte> output,
                     std::optional<Average> average, std::optional<Coding> const& coding)
    : Ranges(program, dtype, sizes, limit, input, output, coding),
      reductions_(program, dtype, reduce, average),
      reducer_(reducer_of(program, dtype, reduce)),
      coding_(coding) {
  auto const bytes = own_bytes();
  scratch_ = memory_of(bytes.scratch);
  partials_ = memory_of(bytes.partials);
  if (coding_) decoded_ = memory_of(decoded_units * coding_->unit_bytes());
  lie_in({scratch_.get(), partials_.get()});
}

void Workspace::begin(std::span<std::byte const> input, std::span<std::byte> output) {
  Ranges::begin(input, output);
  clock_.reset();
}

std::uint64_t Workspace::bytes() const {
  auto const own = own_bytes();
  return own.scratch + own.partials;
}

std::uint64_t Workspace::contiguous(std::uint32_t i, std::uint64_t bytes) const {
  return std::min(bytes, partial(i).bytes);
}

void Workspace::take_in(std::uint32_t i, std::span<std::byte const> received) {
  while (!received.empty()) {
    auto dst = destination(i, contiguous(i, received.size()));
    std::byte const* operand = nullptr;
    if (program().instructions[i].op == Opcode::recv_reduce) {
      auto const source_bytes = source(i, dst.size());
      operand = source_bytes.data();
      dst = dst.first(source_bytes.size());
    }
    clock_.run(dst.size(), operand == nullptr ? 1 : 2, [&] { compute(i, dst, operand, received.data()); });
    received = received.subspan(dst.size());
    if (operand != nullptr) skip_source(i, dst.size());
    skip_destination(i, dst.size());
  }
}

void Workspace::encode(std::uint32_t i, std::uint64_t bytes) {
  auto const elements = bytes / element_bytes();
  auto const from = source(i, bytes);
  auto const to = destination(i, coding_->codes_bytes(elements));
  auto const codes = coding_->codec().bytes(elements);
  clock_.run(bytes, 1, [&] { coding_->codec().encode(to.first(codes), from); });
  std::ranges::fill(to.subspan(codes), std::byte{0});
  skip_source(i, bytes);
  skip_destination(i, to.size());
}

void Workspace::decode(std::uint32_t i, std::uint64_t bytes) {
  bool const adds = program().instructions[i].op == Opcode::reduce;
  while (bytes != 0) {
    auto const part = adds ? std::min(bytes, decoded_units * coding_->unit_bytes()) : bytes;
    auto const elements = part / element_bytes();
    auto const from = source(i, coding_->codes_bytes(elements));
    auto const to = destination(i, part);
    clock_.run(part, adds ? 2 : 1, [&] {
      auto const term = adds ? std::span(decoded_.get(), part) : to;
      coding_->codec().decode(term, from.first(coding_->codec().bytes(elements)));
      if (adds) compute(i, to, to.data(), term.data());
    });
    skip_source(i, from.size());
    skip_destination(i, part);
    bytes -= part;
  }
}

void Workspace::work(std::uint32_t i, std::uint64_t bytes) {
  if (coding_) {
    auto const& instruction = program().instructions[i];
    if (program().is_coded(instruction.dst, instruction.dst_chunk)) return encode(i, bytes);
    if (program().is_coded(instruction.src, instruction.src_chunk)) return decode(i, bytes);
  }
  while (bytes != 0) {
    auto dst = destination(i, contiguous(i, bytes));
    auto const other = source(i, dst.size());
    dst = dst.first(other.size());
    auto const* const operand = program().instructions[i].op == Opcode::reduce ? dst.data() : nullptr;
    clock_.run(dst.size(), operand == nullptr ? 1 : 2, [&] { compute(i, dst, operand, other.data()); });
    bytes -= dst.size();
    skip_source(i, dst.size());
    skip_destination(i, dst.size());
  }
}

void Workspace::compute(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand, std::byte const* other) {
  auto const reduction = reductions_.of(i, {operand, other, dst.data(), partial(i).at});
  auto* const result = reduction.result;
  if (!reduction.only_moves)
    return reducer_.run({reduction.sources.data(), reduction.source_count, &result, 1, dst.size() / element_bytes()},
                        reduction.how);
  if (result != other) std::memcpy(result, other, dst.size());
}

}  // namespace chorus::engine
