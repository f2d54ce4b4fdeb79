// A file with the elements of a tensor: little-endian and row-major, alone or behind a .npy head.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"

namespace chorus::cli {

using Shape = std::vector<std::uint64_t>;

// Parses "1024,1024"; "" is the shape of a single element. Errors: CliErrc::bad_value.
[[nodiscard]] Result<Shape> parse_shape(std::string_view text);
[[nodiscard]] std::string format_shape(std::span<std::uint64_t const> shape);  // "1024,1024"
[[nodiscard]] bool is_npy_name(std::string_view path);

// A mapped file. Movable; the elements stay at their address.
class TensorFile {
 public:
  // `dtype` and `shape`: given by the user. A .npy file, recognised by its name or its first bytes, contains both, and
  // must agree with them. Without a shape there is one dimension. Errors: CliErrc::bad_file; the detail begins with the
  // path.
  [[nodiscard]] static Result<TensorFile> open(std::string const& path, std::optional<Dtype> dtype,
                                               std::optional<Shape> shape);
  ~TensorFile();
  TensorFile(TensorFile&& other) noexcept;
  TensorFile& operator=(TensorFile&&) = delete;

  [[nodiscard]] Dtype dtype() const { return dtype_; }
  [[nodiscard]] Shape const& shape() const { return shape_; }
  [[nodiscard]] std::span<std::byte const> elements() const { return mapped_.subspan(head_bytes_); }
  // True if the file was written to since it was opened: the bytes read may belong to two states.
  [[nodiscard]] bool has_changed() const;

 private:
  explicit TensorFile(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Status map();
  [[nodiscard]] Status describe(std::optional<Dtype> dtype, std::optional<Shape> shape);
  [[nodiscard]] Status describe_as_npy(std::optional<Dtype> dtype, std::optional<Shape> const& shape);
  [[nodiscard]] Error bad(std::string const& why) const;

  std::string path_;
  int descriptor_ = -1;
  std::timespec modified_{};
  std::span<std::byte const> mapped_;
  std::size_t head_bytes_ = 0;
  Dtype dtype_ = Dtype::f32;
  Shape shape_;
};

}  // namespace chorus::cli
