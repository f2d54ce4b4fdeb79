// Checks of what c10d hands over, before a call is issued: each throws ValueError, which names the call.
#pragma once

#include <utility>
#include <vector>

#include "elements.hpp"
#include "membership.hpp"
#include "memory.hpp"

namespace chorus::process_group {

using Lists = std::vector<Tensors>;

// The one tensor of a list that c10d made for several devices.
inline at::Tensor one(Tensors const& tensors, Kind kind) {
  TORCH_CHECK_VALUE(tensors.size() == 1, "chorus: ", kind.name, ": ", tensors.size(), " tensors, expected one");
  check_dense(tensors.front(), kind.name);
  return tensors.front();
}

inline void check_type(at::Tensor const& tensor, at::Tensor const& expected, Kind kind) {
  check_dense(tensor, kind.name);
  TORCH_CHECK_VALUE(tensor.scalar_type() == expected.scalar_type(), "chorus: ", kind.name, ": tensors of types ",
                    tensor.scalar_type(), " and ", expected.scalar_type(), ", expected one type");
}

inline void check_alike(at::Tensor const& tensor, at::Tensor const& expected, Kind kind) {
  check_type(tensor, expected, kind);
  TORCH_CHECK_VALUE(tensor.numel() == expected.numel(), "chorus: ", kind.name, ": a tensor of ", tensor.numel(),
                    " elements, expected ", expected.numel());
}

// A tensor for each rank, of one type.
inline void check_list(Tensors const& list, int size, Kind kind) {
  TORCH_CHECK_VALUE(list.size() == static_cast<std::size_t>(size), "chorus: ", kind.name, ": a list of ", list.size(),
                    " tensors, expected one for each of ", size, " ranks");
  for (auto const& tensor : list) check_type(tensor, list.front(), kind);
}

// The one list with a tensor for each rank, of which that of `rank` is like `own`.
inline Tensors const& one_list(Lists const& lists, at::Tensor const& own, int rank, int size, Kind kind) {
  TORCH_CHECK_VALUE(lists.size() == 1, "chorus: ", kind.name, ": ", lists.size(), " lists, expected one");
  check_list(lists.front(), size, kind);
  check_alike(lists.front()[static_cast<std::size_t>(rank)], own, kind);
  return lists.front();
}

inline void check_equal_blocks(Tensors const& list, Kind kind) {
  TORCH_CHECK_VALUE(all_equal(counts_of(list)), "chorus: ", kind.name, ": tensors of different sizes, expected one");
}

// A tensor that is the blocks of all ranks.
inline void check_whole(at::Tensor const& whole, at::Tensor const& block, int size, Kind kind) {
  check_dense(block, kind.name);
  check_type(whole, block, kind);
  TORCH_CHECK_VALUE(whole.numel() == size * block.numel(), "chorus: ", kind.name, ": a whole of ", whole.numel(),
                    " elements, expected ", size, " blocks of ", block.numel());
}

inline void check_wholes(Tensors const& wholes, Tensors const& blocks, int size, Kind kind) {
  TORCH_CHECK_VALUE(!blocks.empty() && wholes.size() == blocks.size(), "chorus: ", kind.name, ": ", wholes.size(),
                    " wholes and ", blocks.size(), " blocks");
  for (std::size_t i = 0; i < blocks.size(); ++i) check_whole(wholes[i], blocks[i], size, kind);
}

// Returns whether this rank is the root, and has `what`, which the others have not.
inline bool is_root(std::int64_t root, int rank, bool has_none, char const* what, Kind kind) {
  TORCH_CHECK_VALUE(has_none != (root == rank), "chorus: ", kind.name, ": rank ", rank, " has ", has_none ? "no " : "",
                    what, ", expected them at the root alone, which is rank ", root);
  return root == rank;
}

// Elements as the library counts them of each rank's rows.
inline std::vector<std::uint64_t> counts_of_rows(at::Tensor const& tensor, std::vector<std::int64_t> const& splits,
                                                 int size, Kind kind) {
  auto const rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  auto const row = rows == 0 ? 0 : to_read(tensor).elements / static_cast<std::uint64_t>(rows);
  std::vector<std::int64_t> lengths = splits;
  if (lengths.empty()) {
    TORCH_CHECK_VALUE(rows % size == 0, "chorus: ", kind.name, ": ", rows, " rows are not divided equally by ", size,
                      " ranks: give split sizes");
    lengths.assign(static_cast<std::size_t>(size), rows / size);
  }
  std::int64_t sum = 0;
  std::vector<std::uint64_t> counts;
  for (auto const length : lengths) {
    TORCH_CHECK_VALUE(length >= 0, "chorus: ", kind.name, ": a split of ", length, " rows");
    sum += length;
    counts.push_back(static_cast<std::uint64_t>(length) * row);
  }
  TORCH_CHECK_VALUE(lengths.size() == static_cast<std::size_t>(size) && sum == rows, "chorus: ", kind.name, ": ",
                    lengths.size(), " splits of ", sum, " rows, expected ", size, " of ", rows);
  return counts;
}

template <class Opts>
CallOptions with_timeout(Opts const& opts) {
  CallOptions options;
  options.timeout = opts.timeout;
  return options;
}

template <class Opts>
CallOptions with_root(Opts const& opts) {
  auto options = with_timeout(opts);
  options.root = opts.rootRank;
  return options;
}

template <class Opts>
CallOptions reducing(Opts const& opts, at::Tensor const& tensor) {
  auto options = with_timeout(opts);
  options.reduce = reduction_of(opts.reduceOp.op_, tensor.scalar_type());
  return options;
}

// Blocks of unequal sizes need counts, which all ranks have alike.
inline CallOptions with_blocks(CallOptions options, Tensors const& blocks) {
  if (auto counts = counts_of(blocks); !all_equal(counts)) options.counts = std::move(counts);
  return options;
}

// The tensors, or for PREMUL_SUM their products.
inline Tensors scaled(Tensors tensors, c10d::ReduceOp const& reduction) {
  if (reduction.op_ == Reduction::PREMUL_SUM)
    for (auto& tensor : tensors) {
      tensor = plain_copy(tensor);
      premultiply(tensor, reduction);
    }
  return tensors;
}

}  // namespace chorus::process_group
