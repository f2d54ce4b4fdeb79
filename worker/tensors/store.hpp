// The worker's tensors: named, typed, shaped, versioned. Readers hold snapshots, which new versions never change. A
// tensor in a client's region is the exception: it stays at its address, and the client writes there, too.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/residuals.hpp"

namespace chorus::tensors {

using Shape = std::vector<std::uint64_t>;

inline constexpr std::size_t max_dimensions = 32;

// Errors: TensorErrc::bad_shape for more than max_dimensions, or a product (times element_bytes) beyond 2^63.
[[nodiscard]] Result<std::uint64_t> element_count(Shape const& shape, Dtype dtype);
// Parses a shape such as "4096,1024"; "" is a scalar. Errors: TensorErrc::bad_shape with the text.
[[nodiscard]] Result<Shape> parse_shape(std::string_view text);
[[nodiscard]] std::string to_string(Shape const& shape);
// Returns true for names that are safe in paths: [A-Za-z0-9._~/-]{1,255}, no empty, "." or ".." part.
[[nodiscard]] bool is_valid_name(std::string_view name);

// A snapshot of a tensor. `data` keeps this version's bytes alive.
struct Tensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::uint64_t version = 0;  // from 1, one more with each change; goes on after deletion, so ETags are never reused
  std::shared_ptr<Block const> data;

  [[nodiscard]] std::uint64_t elements() const { return data->size_bytes() / element_bytes(dtype); }
};

// Thread-safe: every method holds the lock for the time of a map look-up; no bytes are copied under it.
class Store {
 public:
  Store() = default;
  Store(Store const&) = delete;
  Store& operator=(Store const&) = delete;

  // Errors: TensorErrc::unknown; TensorErrc::busy while a collective writes it in place.
  [[nodiscard]] Result<Tensor> get(std::string_view name) const;
  // Lists tensors whose names come after `after`, in order. The caller must not read data of a tensor that a collective
  // writes in place, and must not keep the snapshots, which make tensors busy.
  [[nodiscard]] std::vector<Tensor> list(std::string_view after, std::size_t limit) const;

  // Creates or replaces a tensor and returns the new version. `data` must not be written afterwards. Errors: busy;
  // TensorErrc::version_changed if `expected` is given and the tensor is at another version (0: must not exist).
  [[nodiscard]] Result<std::uint64_t> put(std::string name, Dtype dtype, Shape shape, std::shared_ptr<Block const> data,
                                          std::optional<std::uint64_t> expected);
  // The same for several tensors with distinct names: all of them, or none. Returns the sum of the new versions.
  struct NewVersion {
    std::string name;
    Dtype dtype = Dtype::f32;
    Shape shape;
    std::shared_ptr<Block const> data;
    std::optional<std::uint64_t> expected;
  };
  [[nodiscard]] Result<std::uint64_t> put_all(std::vector<NewVersion> versions);

  [[nodiscard]] Status erase(std::string_view name, std::optional<std::uint64_t> expected);

  // Exclusive use of a tensor's memory for a collective in place: other calls get busy until it is released. Errors of
  // lock(): unknown, busy, version_changed; busy also while a reader holds a snapshot, unless the tensor lies in a
  // client's region, where snapshots may change anyway.
  class Exclusive {
   public:
    Exclusive(Exclusive&& other) noexcept;
    Exclusive& operator=(Exclusive&&) = delete;
    ~Exclusive();  // releases without a new version
    // tensor(), bytes() and block() are valid until release_changed().
    [[nodiscard]] Tensor const& tensor() const { return tensor_; }
    [[nodiscard]] std::span<std::byte> bytes() const;
    [[nodiscard]] Block& block() const { return *block_; }
    std::uint64_t release_changed();  // releases and returns the new version

   private:
    friend class Store;
    Exclusive(Store& store, Tensor tensor, std::shared_ptr<Block> block);
    void release(std::uint64_t version);
    Store* store_;
    Tensor tensor_;
    std::shared_ptr<Block> block_;
  };
  // The store outlives the Exclusive.
  [[nodiscard]] Result<Exclusive> lock(std::string_view name, std::uint64_t expected);

  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::uint64_t host_bytes() const;  // of tensors in host memory

  // Residuals of the tensors; erase() drops those of its tensor.
  [[nodiscard]] Residuals& residuals() { return residuals_; }

 private:
  struct Slot {
    Tensor tensor;
    bool exclusive = false;
  };
  // With the lock held:
  [[nodiscard]] Status check_put(NewVersion const& version) const;
  std::uint64_t replace(NewVersion& version);                           // leaves the old data in version.data
  [[nodiscard]] std::uint64_t version_before(std::string const& name);  // also removes the name from last_version_
  void remember_version(std::string const& name, std::uint64_t version);

  void release(std::string const& name, std::uint64_t version);  // called by Exclusive

  Residuals residuals_;
  mutable std::mutex mutex_;
  std::map<std::string, Slot, std::less<>> slots_;
  std::map<std::string, std::uint64_t, std::less<>> last_version_;  // of erased names; bounded
  std::uint64_t version_floor_ = 0;  // at least the last version of every erased name that is not in last_version_
};

}  // namespace chorus::tensors
