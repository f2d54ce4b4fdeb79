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
      dtype_(dtype),
      reduce_(reduce),
      combine_(reduces(program.spec.op) ? devices::find_combine(reduce, dtype) : nullptr),
      divide_(combine_ != nullptr && reduce == ReduceOp::avg ? devices::find_divide(dtype) : nullptr),
      widen_(combine_ != nullptr ? devices::find_widen(dtype) : nullptr),
      how_(average.value_or(Average::of(dtype, program.spec.ranks))),
      coding_(coding) {
  if (divide_ != nullptr && (average || how_.scale != 1)) average_.emplace(reduce, dtype);
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
  return widen_ == nullptr ? bytes : std::min(bytes, partial(i).bytes);
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
  if (average_ && (operand != nullptr || program().instructions[i].is_final()))
    return compute_average(i, dst, operand, other);
  if (widen_ != nullptr) return compute_halves(i, dst, operand, other);
  auto const elements = dst.size() / element_bytes();
  if (operand != nullptr)
    combine_(dst.data(), operand, other, elements);
  else if (dst.data() != other)
    std::memcpy(dst.data(), other, dst.size());
  if (divide_ != nullptr && program().instructions[i].is_final()) divide_(dst.data(), elements, program().spec.ranks);
}

void Workspace::compute_average(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand,
                                std::byte const* other) {
  auto const& instruction = program().instructions[i];
  auto* const kept = partial(i).at;
  devices::Reducer::How how;
  if (instruction.is_final()) {
    how.divisor = how_.divisor;
    how.scale = how_.divisor == 1 ? 1 : how_.scale;
  }
  how.wide_source = widen_ != nullptr && instruction.has_wide_operand();
  how.wide_results = widen_ != nullptr && instruction.has_wide_result();
  std::byte const* const sources[] = {how.wide_source ? kept : operand, other};
  float const weights[] = {instruction.has_partial_operand() ? 1 : 1 / how_.scale,
                           instruction.has_partial_other() ? 1 : 1 / how_.scale};
  bool const adds = operand != nullptr;
  if (adds) how.weights = weights;
  auto* const result = how.wide_results ? kept : dst.data();
  average_->run({adds ? sources : sources + 1, adds ? std::size_t{2} : std::size_t{1}, &result, 1,
                 dst.size() / element_bytes(), false},
                how);
}

void Workspace::compute_halves(std::uint32_t i, std::span<std::byte> dst, std::byte const* operand,
                               std::byte const* other) {
  auto const& instruction = program().instructions[i];
  auto const elements = dst.size() / element_bytes();
  bool const divides = divide_ != nullptr && instruction.is_final();
  auto* const kept = partial(i).at;
  auto* const result = instruction.has_wide_result() ? kept : dst.data();
  if (operand != nullptr) {
    auto const width = [](bool is_wide) { return is_wide ? devices::Width::wide : devices::Width::narrow; };
    auto const combine = devices::find_half_combine(reduce_, dtype_, width(instruction.has_wide_operand()),
                                                    width(instruction.has_wide_result()));
    combine(result, instruction.has_wide_operand() ? kept : operand, other, elements,
            divides ? static_cast<float>(program().spec.ranks) : 1.0F);
    return;
  }
  if (instruction.has_wide_result())
    widen_(result, other, elements);
  else if (result != other)
    std::memcpy(result, other, dst.size());
  if (divides) divide_(result, elements, program().spec.ranks);
}

}  // namespace chorus::engine
