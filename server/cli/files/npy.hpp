// The head of a .npy file, in which NumPy stores arrays: type, shape and position of the elements.
//
// Versions 1.0 and 2.0 of the format (numpy.lib.format): six bytes of magic, two of version, the length of a line of
// text as 16 or 32 bits, and that line, a Python dictionary of three entries. The elements follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"

namespace chorus::cli {

struct NpyHead {
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;
  std::size_t bytes = 0;  // length of the head: the elements begin behind it
};

[[nodiscard]] bool begins_like_npy(std::span<std::byte const> file);

// Parses the beginning of a file: all of it, or at least npy_head_bytes_max. Errors: CliErrc::bad_file; the detail says
// what is wrong or unsupported: elements that are big-endian or no dtype of tensors, column-major order, another
// version.
inline constexpr std::size_t npy_head_bytes_max = 65536;
[[nodiscard]] Result<NpyHead> parse_npy(std::span<std::byte const> file);

// Writes version 1.0. Empty for bf16, which the format does not have, and for thousands of dimensions.
[[nodiscard]] std::optional<std::string> npy_head(Dtype dtype, std::span<std::uint64_t const> shape);

}  // namespace chorus::cli
