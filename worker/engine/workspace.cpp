#include "worker/engine/workspace.hpp"

#include <algorithm>
#include <cstring>

#include "collectives/core/assert.hpp"

namespace chorus::engine {

using plan::Buffer;
using plan::Instruction;
using plan::Opcode;

Workspace::Workspace(plan::Program const& program, Dtype dtype, ReduceOp reduce, plan::Sizes const& sizes,
                     std::span<std::byte const> input, std::span<std::byte> output)
    : program_(program),
      addresses_(program, sizes, chorus::element_bytes(dtype)),
      element_bytes_(chorus::element_bytes(dtype)),
      dtype_(dtype),
      reduce_(reduce),
      combine_(reduces(program.spec.op) ? devices::find_combine(reduce, dtype) : nullptr),
      divide_(combine_ != nullptr && reduce == ReduceOp::avg ? devices::find_divide(dtype) : nullptr),
      widen_(combine_ != nullptr ? devices::find_widen(dtype) : nullptr),
      input_(input.data()),
      output_(output.data()),
      scratch_(std::make_unique_for_overwrite<std::byte[]>(addresses_.scratch_bytes())),
      sources_(program.instructions.size()),
      destinations_(program.instructions.size()) {
  CHORUS_ASSERT(input.size() == addresses_.input_bytes() && output.size() == addresses_.output_bytes(),
                "buffers hold what the program addresses");
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    auto const& each = program.instructions[i];
    if (each.reads_src()) sources_[i] = first(each.src, each.src_chunk, each.chunks, each.stride);
    if (each.writes_dst()) destinations_[i] = first(each.dst, each.dst_chunk, each.chunks, each.stride);
  }
  prepare_wide_partials();
}

void Workspace::prepare_wide_partials() {
  if (widen_ == nullptr) return;
  auto const keeps_any = [&](Buffer buffer) {
    return std::any_of(program_.instructions.begin(), program_.instructions.end(),
                       [&](Instruction const& i) { return i.has_wide_result() && i.dst == buffer; });
  };
  auto const f32_for = [&](std::uint64_t bytes) {
    return std::make_unique_for_overwrite<std::byte[]>(bytes / element_bytes_ * sizeof(float));
  };
  if (keeps_any(Buffer::output)) wide_output_ = f32_for(addresses_.output_bytes());
  if (keeps_any(Buffer::scratch)) wide_scratch_ = f32_for(addresses_.scratch_bytes());
}

Workspace::Cursor Workspace::first(Buffer buffer, std::uint32_t first_chunk, std::uint32_t chunks,
                                   std::uint32_t stride) const {
  Cursor cursor;
  cursor.chunk = first_chunk;
  cursor.chunks = chunks;
  enter_next_piece(cursor, buffer, stride);
  return cursor;
}

void Workspace::enter_next_piece(Cursor& cursor, Buffer buffer, std::uint32_t stride) const {
  while (cursor.left == 0 && cursor.chunks != 0) {
    auto const chunks = stride == 1 ? cursor.chunks : 1;
    cursor.at = addresses_.begin_of(buffer, cursor.chunk);
    cursor.left = addresses_.begin_of(buffer, cursor.chunk + chunks) - cursor.at;
    cursor.chunk += chunks * stride;
    cursor.chunks -= chunks;
  }
}

void Workspace::skip(Cursor& cursor, Buffer buffer, std::uint32_t stride, std::uint64_t bytes) const {
  cursor.at += bytes;
  cursor.left -= bytes;
  enter_next_piece(cursor, buffer, stride);
}

std::span<std::byte const> Workspace::source(std::uint32_t i, std::uint64_t limit) const {
  auto const& cursor = sources_[i];
  auto const buffer = program_.instructions[i].src;
  auto const* base = buffer == Buffer::input ? input_ : buffer == Buffer::output ? output_ : scratch_.get();
  return {base + cursor.at, std::min(cursor.left, limit)};
}

std::span<std::byte> Workspace::destination(std::uint32_t i, std::uint64_t limit) const {
  auto const& cursor = destinations_[i];
  auto const buffer = program_.instructions[i].dst;
  CHORUS_ASSERT(buffer != Buffer::input, "a program never writes its input");
  auto* base = buffer == Buffer::output ? output_ : scratch_.get();
  return {base + cursor.at, std::min(cursor.left, limit)};
}

void Workspace::skip_source(std::uint32_t i, std::uint64_t bytes) {
  auto const& instruction = program_.instructions[i];
  skip(sources_[i], instruction.src, instruction.stride, bytes);
}

void Workspace::skip_destination(std::uint32_t i, std::uint64_t bytes) {
  auto const& instruction = program_.instructions[i];
  skip(destinations_[i], instruction.dst, instruction.stride, bytes);
}

bool Workspace::receives_as_it_is(std::uint32_t i) const {
  auto const& instruction = program_.instructions[i];
  return instruction.op == Opcode::recv && (widen_ == nullptr || !instruction.has_wide_result());
}

void Workspace::take_in(std::uint32_t i, std::span<std::byte const> received) {
  while (!received.empty()) {
    auto dst = destination(i, received.size());
    std::byte const* operand = nullptr;
    if (program_.instructions[i].op == Opcode::recv_reduce) {
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

void Workspace::work(std::uint32_t i, std::uint64_t bytes) {
  while (bytes != 0) {
    auto dst = destination(i, bytes);
    auto const other = source(i, dst.size());
    dst = dst.first(other.size());
    auto const* const operand = program_.instructions[i].op == Opcode::reduce ? dst.data() : nullptr;
    clock_.run(dst.size(), operand == nullptr ? 1 : 2, [&] { compute(i, dst, operand, other.data()); });
    bytes -= dst.size();
    skip_source(i, dst.size());
    skip_destination(i, dst.size());
  }
}

void Workspace::compute(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand, std::byte const* other) {
  if (widen_ != nullptr) return compute_halves(i, dst, operand, other);
  auto const elements = dst.size() / element_bytes_;
  if (operand != nullptr)
    combine_(dst.data(), operand, other, elements);
  else if (dst.data() != other)
    std::memcpy(dst.data(), other, dst.size());
  if (divide_ != nullptr && program_.instructions[i].is_final()) divide_(dst.data(), elements, program_.spec.ranks);
}

void Workspace::compute_halves(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand,
                               std::byte const* other) {
  auto const& instruction = program_.instructions[i];
  auto const elements = dst.size() / element_bytes_;
  bool const divides = divide_ != nullptr && instruction.is_final();
  auto* const result = instruction.has_wide_result() ? wide(instruction.dst, destinations_[i].at) : dst.data();
  if (operand != nullptr) {
    auto const accumulated = instruction.op == Opcode::recv_reduce ? instruction.src : instruction.dst;
    auto const& cursor = instruction.op == Opcode::recv_reduce ? sources_[i] : destinations_[i];
    auto const width = [](bool is_wide) { return is_wide ? devices::Width::wide : devices::Width::narrow; };
    auto const combine = devices::find_half_combine(reduce_, dtype_, width(instruction.has_wide_operand()),
                                                    width(instruction.has_wide_result()));
    combine(result, instruction.has_wide_operand() ? wide(accumulated, cursor.at) : operand, other, elements,
            divides ? static_cast<float>(program_.spec.ranks) : 1.0F);
    return;
  }
  if (instruction.has_wide_result())
    widen_(result, other, elements);
  else if (result != other)
    std::memcpy(result, other, dst.size());
  if (divides) divide_(result, elements, program_.spec.ranks);
}

std::byte* Workspace::wide(Buffer buffer, std::uint64_t at) const {
  auto* const base = buffer == Buffer::output ? wide_output_.get() : wide_scratch_.get();
  return base + at / element_bytes_ * sizeof(float);
}

}  // namespace chorus::engine
