// The worker's tensors: named, typed, shaped, versioned. Readers hold snapshots; a new version never changes an old
// one, except of tensors that lie in a client's region: those stay at their place, and the client writes there too.
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

namespace chorus::tensors {

using Shape = std::vector<std::uint64_t>;

inline constexpr std::size_t max_dimensions = 32;

// Errors: TensorErrc::bad_shape for more than max_dimensions, or a product (times element_bytes) beyond 2^63.
[[nodiscard]] Result<std::uint64_t> element_count(Shape const& shape, Dtype dtype);
// "4096,1024"; "" is a scalar. Errors: TensorErrc::bad_shape with the text.
[[nodiscard]] Result<Shape> parse_shape(std::string_view text);
[[nodiscard]] std::string to_string(Shape const& shape);
// Path-safe names: [A-Za-z0-9._~/-]{1,255}, no empty, "." or ".." part.
[[nodiscard]] bool is_valid_name(std::string_view name);

// A snapshot. `data` keeps this version's bytes alive.
struct Tensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  Shape shape;
  std::uint64_t version = 0;  // from 1, one more with each change; survives deletion so that an ETag is never reused
  std::shared_ptr<Block const> data;

  [[nodiscard]] std::uint64_t elements() const { return data->size_bytes() / element_bytes(dtype); }
};

// Thread-safe: every method takes the lock for the time of a map look-up; no bytes are copied under it.
class Store {
 public:
  Store() = default;
  Store(Store const&) = delete;
  Store& operator=(Store const&) = delete;

  // Errors: TensorErrc::unknown; TensorErrc::busy while a collective writes it in place.
  [[nodiscard]] Result<Tensor> get(std::string_view name) const;
  // In the order of names, those that come after `after`. Of a tensor that a collective writes in place only the
  // description may be read, and the snapshots are not to be kept: they would make it busy.
  [[nodiscard]] std::vector<Tensor> list(std::string_view after, std::size_t limit) const;

  // Creates or replaces, and gives the new version. `data` is not written by anybody afterwards. Errors: busy;
  // TensorErrc::version_changed if `expected` is given and the tensor is at another version (0: must not exist).
  [[nodiscard]] Result<std::uint64_t> put(std::string name, Dtype dtype, Shape shape, std::shared_ptr<Block const> data,
                                          std::optional<std::uint64_t> expected);
  // The same for several tensors: all of them, or none. Names are distinct. Gives the sum of the new versions.
  struct NewVersion {
    std::string name;
    Dtype dtype = Dtype::f32;
    Shape shape;
    std::shared_ptr<Block const> data;
    std::optional<std::uint64_t> expected;
  };
  [[nodiscard]] Result<std::uint64_t> put_all(std::vector<NewVersion> versions);

  [[nodiscard]] Status erase(std::string_view name, std::optional<std::uint64_t> expected);

  // Exclusive use of a tensor's own memory for a collective in place: others get busy until it is released. Releasing
  // with `changed` makes a new version. Errors: unknown, busy, version_changed; busy also while a reader holds a
  // snapshot, unless the tensor lies in a client's region, where nobody is promised that it stays as it is.
  class Exclusive {
   public:
    Exclusive(Exclusive&& other) noexcept;
    Exclusive& operator=(Exclusive&&) = delete;
    ~Exclusive();  // releases, unchanged
    // Until release_changed(), as are bytes() and block().
    [[nodiscard]] Tensor const& tensor() const { return tensor_; }
    [[nodiscard]] std::span<std::byte> bytes() const;
    [[nodiscard]] Block& block() const { return *block_; }
    std::uint64_t release_changed();  // gives the new version

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
  [[nodiscard]] std::uint64_t host_bytes() const;  // of tensors that lie on no GPU

 private:
  struct Slot {
    Tensor tensor;
    bool exclusive = false;
  };
  // With the lock held:
  [[nodiscard]] Status check_put(NewVersion const& version) const;
  std::uint64_t replace(NewVersion& version);                           // what was there before is left in version.data
  [[nodiscard]] std::uint64_t version_before(std::string const& name);  // forgets it: the name is about to exist again
  void remember_version(std::string const& name, std::uint64_t version);

  void release(std::string const& name, std::uint64_t version);  // of an Exclusive

  mutable std::mutex mutex_;
  std::map<std::string, Slot, std::less<>> slots_;
  std::map<std::string, std::uint64_t, std::less<>> last_version_;  // of erased names, bounded
  std::uint64_t version_floor_ = 0;  // at least the last version of every erased name that is not in last_version_
};

}  // namespace chorus::tensors
