// What compressed collectives with error feedback have not sent yet of a worker's tensors: a float per element, for
// each tensor and group. docs/reference/compressed_collectives.md
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "collectives/core/result.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::tensors {

// Thread-safe.
class Residuals {
  struct Entry;

 public:
  // The use of a residual by one run; meanwhile no other run uses it. Unless the run calls keep(), the residual stays
  // as it was. One thread at a time; the Residuals outlive it.
  class Use {
   public:
    Use(Residuals& residuals, std::shared_ptr<Entry> entry, std::shared_ptr<Block> lost)
        : residuals_(residuals), entry_(std::move(entry)), lost_(std::move(lost)) {}
    ~Use();
    Use(Use const&) = delete;
    Use& operator=(Use const&) = delete;

    [[nodiscard]] std::span<float const> residual() const;  // empty: all 0
    [[nodiscard]] std::span<float> lost() const;
    // lost() becomes the residual, unless that was dropped meanwhile. Once.
    void keep();

   private:
    Residuals& residuals_;
    std::shared_ptr<Entry> const entry_;
    std::shared_ptr<Block> lost_;
  };

  // `lost`: host memory for a float per element of the contribution. A residual of another epoch of the group, or of
  // another number of elements, is dropped. Errors: TensorErrc::busy while another run uses it.
  [[nodiscard]] Result<std::shared_ptr<Use>> use(std::string const& tensor, std::string const& group,
                                                 std::uint32_t epoch, std::shared_ptr<Block> lost);

  // Give back the memory of all residuals of a tensor or of a group.
  void drop_tensor(std::string_view tensor);
  void drop_group(std::string_view group);

  // Memory of the residuals.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  using Key = std::pair<std::string, std::string>;  // tensor, group
  using Entries = std::map<Key, std::shared_ptr<Entry>>;
  template <class Fits>
  void drop(Fits fits);

  mutable std::mutex mutex_;
  Entries entries_;
};

}  // namespace chorus::tensors
