// Memory of tensors as calls of the library take it. A tensor of the CPU that is contiguous is used where it lies;
// others, and lists that do not lie one after the other, are copied in the call's turn.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "elements.hpp"

namespace chorus::process_group {

// Throws ValueError for a tensor without dense elements, or without memory that can be copied to the CPU.
inline void check_dense(at::Tensor const& tensor, char const* call) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "chorus: ", call, ": a tensor of layout ", tensor.layout(),
                    ", expected torch.strided");
  auto const device = tensor.device();
  TORCH_CHECK_VALUE(device.is_cpu() || device.is_cuda() || device.type() == c10::DeviceType::PrivateUse1,
                    "chorus: ", call, ": a tensor on ", device, ", expected cpu or cuda: pass tensor.cpu()");
}

inline bool is_plain(at::Tensor const& tensor) {
  return tensor.device().is_cpu() && tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

// Of memory of the CPU for values of the tensor; pinned for those of a GPU, which then copies several times as fast.
inline at::TensorOptions on_cpu(at::Tensor const& tensor) {
  return tensor.options().device(at::kCPU).pinned_memory(tensor.is_cuda());
}

// A copy of the tensor's values in memory of its own, on the CPU.
inline at::Tensor plain_copy(at::Tensor const& tensor) {
  return at::empty(tensor.sizes(), on_cpu(tensor).memory_format(at::MemoryFormat::Contiguous)).copy_(tensor);
}

inline chorus_const_tensor_t to_read(at::Tensor const& memory) {
  auto const element = element_of(memory.scalar_type());
  return {memory.data_ptr(), static_cast<std::uint64_t>(memory.numel() * element.count), element.dtype, 0};
}

inline chorus_tensor_t to_write(at::Tensor const& memory) {
  auto const element = element_of(memory.scalar_type());
  return {memory.data_ptr(), static_cast<std::uint64_t>(memory.numel() * element.count), element.dtype, 0};
}

// Whether `block` is memory of `whole`: the block with this number, where all blocks have its size. The library refuses
// an input that overlaps the output, so that one of the two has to be copied.
inline bool is_block_of(at::Tensor const& whole, at::Tensor const& block, int number) {
  if (!is_plain(whole) || !is_plain(block) || block.numel() == 0) return false;
  auto const* const begin = static_cast<char const*>(whole.data_ptr());
  return block.data_ptr() == begin + static_cast<std::size_t>(number) * block.nbytes();
}

// A tensor that a call reads; with `apart` in a copy.
class Read {
 public:
  explicit Read(at::Tensor const& tensor, bool apart = false)
      : memory_(is_plain(tensor) && !apart ? tensor : plain_copy(tensor)), view_(to_read(memory_)) {}
  [[nodiscard]] chorus_const_tensor_t const* view() const { return &view_; }

 private:
  at::Tensor memory_;
  chorus_const_tensor_t view_;
};

// A tensor that a call writes to, and reads where it is in place; with `apart` elsewhere until finish().
class Written {
 public:
  Written(at::Tensor tensor, bool in_place, bool apart = false)
      : tensor_(std::move(tensor)),
        memory_(is_plain(tensor_) && !apart ? tensor_
                : in_place                  ? plain_copy(tensor_)
                                            : at::empty(tensor_.sizes(), on_cpu(tensor_))),
        view_(to_write(memory_)) {}
  [[nodiscard]] chorus_tensor_t const* view() const { return &view_; }
  [[nodiscard]] at::Tensor& memory() { return memory_; }
  // After the call.
  void finish() {
    if (!memory_.is_same(tensor_)) tensor_.copy_(memory_);
  }

 private:
  at::Tensor tensor_, memory_;
  chorus_tensor_t view_;
};

using Tensors = std::vector<at::Tensor>;

// The same of a list with a tensor for each block.
inline bool is_block_of(Tensors const& list, at::Tensor const& block, int number) {
  return is_block_of(list[static_cast<std::size_t>(number)], block, 0);
}

// Elements of a list of tensors as the library counts them, tensor by tensor.
inline std::vector<std::uint64_t> counts_of(Tensors const& tensors) {
  std::vector<std::uint64_t> counts;
  for (auto const& tensor : tensors) counts.push_back(to_read(tensor).elements);
  return counts;
}

inline bool all_equal(std::vector<std::uint64_t> const& counts) {
  for (auto const count : counts)
    if (count != counts.front()) return false;
  return true;
}

// A list of tensors of one dtype as one whole: where they lie if that is one after the other, else in a copy.
class Whole {
 public:
  explicit Whole(Tensors tensors) : tensors_(std::move(tensors)) {
    std::int64_t elements = 0;
    for (auto const& tensor : tensors_) elements += tensor.numel();
    if (!lie_in_a_row()) memory_ = at::empty({elements}, on_cpu(tensors_.front()));
    auto const element = element_of(tensors_.front().scalar_type());
    auto* const data = memory_.defined() ? memory_.data_ptr() : tensors_.front().data_ptr();
    written_ = {data, static_cast<std::uint64_t>(elements * element.count), element.dtype, 0};
    read_ = {data, written_.elements, written_.dtype, 0};
  }
  Whole(Whole const&) = delete;
  Whole& operator=(Whole const&) = delete;

  // Before a call that reads.
  void collect() {
    if (!memory_.defined()) return;
    std::int64_t begin = 0;
    for (auto const& tensor : tensors_) {
      memory_.narrow(0, begin, tensor.numel()).view(tensor.sizes()).copy_(tensor);
      begin += tensor.numel();
    }
  }
  // After a call that has written.
  void distribute() {
    if (!memory_.defined()) return;
    std::int64_t begin = 0;
    for (auto& tensor : tensors_) {
      tensor.copy_(memory_.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
      begin += tensor.numel();
    }
  }
  [[nodiscard]] chorus_const_tensor_t const* to_read() const { return &read_; }
  [[nodiscard]] chorus_tensor_t const* to_write() const { return &written_; }

 private:
  [[nodiscard]] bool lie_in_a_row() const {
    auto const* next = static_cast<char const*>(tensors_.front().data_ptr());
    for (auto const& tensor : tensors_) {
      if (!is_plain(tensor) || tensor.data_ptr() != next) return false;
      next += tensor.nbytes();
    }
    return true;
  }

  Tensors tensors_;
  at::Tensor memory_;  // undefined: the tensors lie in a row
  chorus_tensor_t written_{};
  chorus_const_tensor_t read_{};
};

}  // namespace chorus::process_group
