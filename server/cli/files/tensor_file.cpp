#include "server/cli/files/tensor_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <utility>

#include "server/cli/files/npy.hpp"
#include "server/cli/text/errc.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are sent as they lie");

std::string reason() { return std::generic_category().message(errno); }

// Empty if the size overflows.
std::optional<std::uint64_t> bytes_of(Dtype dtype, Shape const& shape) {
  std::uint64_t bytes = element_bytes(dtype);
  for (auto const extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return bytes;
}

std::string describe_tensor(Dtype dtype, Shape const& shape) {
  return std::string(name(dtype)) + "[" + format_shape(shape) + "]";
}

}  // namespace

Result<Shape> parse_shape(std::string_view text) {
  if (text.empty()) return Shape();
  auto shape = parse_list(text, [](std::string_view extent) { return parse_number(extent, 0, UINT64_MAX); });
  if (!shape)
    return Error(CliErrc::bad_value, "'" + std::string(text.substr(0, 80)) + "' is not a shape like 1024,1024");
  return shape;
}

std::string format_shape(std::span<std::uint64_t const> shape) {
  std::string text;
  for (auto const extent : shape) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return text;
}

bool is_npy_name(std::string_view path) { return path.ends_with(".npy"); }

Result<TensorFile> TensorFile::open(std::string const& path, std::optional<Dtype> dtype, std::optional<Shape> shape) {
  TensorFile file(path);
  if (auto const mapped = file.map(); !mapped) return mapped.error();
  if (auto const described = file.describe(dtype, std::move(shape)); !described) return described.error();
  return file;
}

TensorFile::TensorFile(TensorFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      modified_(other.modified_),
      mapped_(std::exchange(other.mapped_, {})),
      head_bytes_(other.head_bytes_),
      dtype_(other.dtype_),
      shape_(std::move(other.shape_)) {}

TensorFile::~TensorFile() {
  if (!mapped_.empty()) ::munmap(const_cast<std::byte*>(mapped_.data()), mapped_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

Error TensorFile::bad(std::string const& why) const { return {CliErrc::bad_file, path_ + ": " + why}; }

Status TensorFile::map() {
  struct stat about {};
  // Opening a special file may block, so O_NONBLOCK is set.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0 || ::fstat(descriptor_, &about) != 0) return bad(reason());
  if (!S_ISREG(about.st_mode)) return bad("it is no plain file, which a tensor's length is taken from");
  modified_ = about.st_mtim;
  auto const bytes = static_cast<std::size_t>(about.st_size);
  if (bytes == 0) return ok();
  auto* const begin = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor_, 0);
  if (begin == MAP_FAILED) return bad(reason());
  mapped_ = {static_cast<std::byte const*>(begin), bytes};
  ::madvise(begin, bytes, MADV_SEQUENTIAL);
  return ok();
}

Status TensorFile::describe(std::optional<Dtype> dtype, std::optional<Shape> shape) {
  if (is_npy_name(path_) || begins_like_npy(mapped_)) return describe_as_npy(dtype, shape);
  if (!dtype) return bad("--dtype has to say what the elements are: it is no .npy file, which would say so itself");
  dtype_ = *dtype;
  auto const element = element_bytes(*dtype);
  auto const bytes = std::to_string(mapped_.size()) + " bytes";
  if (mapped_.size() % element != 0)
    return bad("its " + bytes + " are no whole number of " + std::string(name(*dtype)) + " elements of " +
               std::to_string(element) + " bytes");
  shape_ = shape ? std::move(*shape) : Shape{mapped_.size() / element};
  if (auto const wanted = bytes_of(dtype_, shape_); wanted != mapped_.size())
    return bad("it has " + bytes + ", and " + describe_tensor(dtype_, shape_) + " has " +
               (wanted ? std::to_string(*wanted) : "more than 2^64"));
  return ok();
}

Status TensorFile::describe_as_npy(std::optional<Dtype> dtype, std::optional<Shape> const& shape) {
  auto head = parse_npy(mapped_);
  if (!head) return bad(head.error().detail);
  dtype_ = head->dtype;
  shape_ = std::move(head->shape);
  head_bytes_ = head->bytes;
  auto const found = describe_tensor(dtype_, shape_);
  if (dtype && *dtype != dtype_)
    return bad("it is a .npy file of " + found + ", which --dtype " + std::string(name(*dtype)) + " contradicts");
  if (shape && *shape != shape_)
    return bad("it is a .npy file of " + found + ", which --shape " + format_shape(*shape) + " contradicts");
  if (auto const wanted = bytes_of(dtype_, shape_); wanted != elements().size())
    return bad("it is a .npy file of " + found + ", which has " +
               (wanted ? std::to_string(*wanted) : "more than 2^64") + " bytes, and " +
               std::to_string(elements().size()) + " follow its head");
  return ok();
}

bool TensorFile::has_changed() const {
  struct stat about {};
  return ::fstat(descriptor_, &about) != 0 || static_cast<std::size_t>(about.st_size) != mapped_.size() ||
         about.st_mtim.tv_sec != modified_.tv_sec || about.st_mtim.tv_nsec != modified_.tv_nsec;
}

}  // namespace chorus::cli
