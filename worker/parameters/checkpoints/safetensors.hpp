// The safetensors format: 8 bytes of header length, a JSON header, the bytes of the tensors without gaps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"

namespace chorus::checkpoints {

inline constexpr std::uint64_t safetensors_header_max = 100'000'000;  // as the format says
inline constexpr std::size_t safetensors_prefix = 8;

struct TensorEntry {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // in bytes, from the end of the header

  friend bool operator==(TensorEntry const&, TensorEntry const&) = default;
};

// Returns the bytes of dtype and shape; nothing if they do not fit into 64 bits. A dimension of 0 makes a tensor empty,
// but the product of the others must still fit, because readers multiply them in different orders.
[[nodiscard]] std::optional<std::uint64_t> data_bytes(TensorEntry const& tensor);

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;                           // in the order of their bytes
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__", in the order of the file
  std::uint64_t data_begin = 0;                               // offset of the tensors' bytes in the file

  [[nodiscard]] TensorEntry const* find(std::string_view name) const;
  friend bool operator==(SafetensorsHeader const&, SafetensorsHeader const&) = default;
};

// Makes prefix and header of a file whose tensors follow in the given order, and sets begin and end in `tensors`. The
// header is padded with spaces, so that data begins at a multiple of 64 bytes. Errors: bad_name (not printable ASCII,
// "" or "__metadata__"; also for metadata), duplicate_name, size_overflow, header_too_large.
[[nodiscard]] Result<std::string> make_safetensors_header(
    std::vector<TensorEntry>& tensors, std::vector<std::pair<std::string, std::string>> const& metadata = {});

}  // namespace chorus::checkpoints
