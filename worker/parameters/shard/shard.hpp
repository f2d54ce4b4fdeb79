// One shard: values, optimizer, deduplication window, clocks. A state machine without sockets, threads or time: a
// caller whose push or read must wait asks again later.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/api/parameters/parameters.hpp"
#include "http/message/message.hpp"
#include "worker/parameters/optimizers/gpu_elements.hpp"
#include "worker/parameters/optimizers/initializer.hpp"
#include "worker/parameters/optimizers/optimizer.hpp"
#include "worker/parameters/shard/clocks.hpp"
#include "worker/parameters/shard/push.hpp"
#include "worker/parameters/shard/row_index.hpp"
#include "worker/parameters/shard/rows.hpp"
#include "worker/parameters/shard/step.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::parameters {

enum class NonFinite : std::uint8_t { accept, reject, zero };

// The description of a shard, which never changes.
struct ShardSpec {
  std::string parameter;
  std::string uid;  // of the parameter: see api::Parameter; empty: not known
  std::uint32_t index = 0;
  Dtype dtype = Dtype::f32;
  std::uint64_t begin = 0, end = 0;  // elements of the parameter
  std::vector<std::uint64_t> shape;  // of the parameter
  std::uint64_t whole = 0;           // elements of the parameter
  std::uint64_t row_elements = 0;    // 0: the shard has no whole rows, so that rows cannot be selected
  std::int64_t staleness = -1;
  bool averages = false;  // in rounds: use the mean of the gradients, not their sum
  NonFinite nonfinite = NonFinite::accept;
  api::OptimizerSettings optimizer;
  api::InitializerSettings initializer;
  std::uint64_t initial_row_elements = 1;  // of a row of the initializer, also if shards cut rows
  std::vector<std::string> clients;        // at the beginning
  std::optional<std::uint64_t> lazy_rows;  // lazy rows: the most that may exist
  bool is_logged = false;                  // the owner keeps a push log
  bool on_gpu = false;

  [[nodiscard]] std::uint64_t elements() const { return end - begin; }
  [[nodiscard]] bool is_whole() const { return elements() == whole; }
  [[nodiscard]] std::uint64_t bytes() const { return elements() * element_bytes(dtype); }
  [[nodiscard]] RowRange rows() const {
    return row_elements == 0 ? RowRange{} : RowRange{begin / row_elements, end / row_elements};
  }
  // Problems: invalid_field for an assignment that no coordinator sends.
  [[nodiscard]] static http::Checked<ShardSpec> from(api::ShardAssignment const& assignment);
};

// A copy of a shard's whole state, except its spec, at one position. The arrays' contents never change.
struct ShardImage {
  struct Array {
    std::string name;  // "values", of the optimizer's state, "held/0", ...
    Dtype dtype = Dtype::u8;
    std::uint64_t elements_each = 0;  // elements of the shard per element; 0: the array is not per element
    http::SharedBytes content;
  };
  api::ShardState state;
  std::vector<Array> arrays;
  std::optional<std::uint64_t> history = {};  // see serving/copy/history.hpp
};

// The memory for shards' arrays. Pool and GPUs outlive the shards.
struct ShardMemory {
  // Implicit, because most shards need host memory only.
  ShardMemory(tensors::Pool& host, devices::Gpus const* all = nullptr) : pool(host), gpus(all) {}

  // Returns the GPU with the most free memory. Errors: GpuErrc::unavailable, lost.
  [[nodiscard]] Result<devices::GpuUnit*> roomiest_gpu() const;

  tensors::Pool& pool;
  devices::Gpus const* gpus;  // null: none
};

// Converts an error of Shard::make to a problem: unsupported without a working GPU; otherwise unavailable.
[[nodiscard]] http::Problem why_not_made(Error const& error);

// In rounds: removes the pushes of the open round, which their clients push again. The image is then that of the shard
// at the end of the last round. The round is kept if one of its clients has set values since.
void leave_open_round(ShardImage& image);

// Used by one thread, except for Change. Some functions wait for the device if the shard is on a GPU. They say so, and
// may be called on any thread while no other call uses the shard.
class Shard {
 public:
  // Makes a shard with initial values and version 0. Waits for the device. Errors: those of Optimizer::make,
  // Initializer::make and Pool::acquire; GpuErrc.
  enum class Content : std::uint8_t { initial, to_come };  // to_come: filled with place_for, settle and restore
  [[nodiscard]] static Result<std::unique_ptr<Shard>> make(ShardSpec spec, ShardMemory memory,
                                                           Content content = Content::initial);
  Shard(Shard const&) = delete;
  Shard& operator=(Shard const&) = delete;

  [[nodiscard]] ShardSpec const& spec() const { return spec_; }
  [[nodiscard]] std::uint64_t version() const { return version_; }    // of the values: one more with each change
  [[nodiscard]] std::uint64_t position() const { return position_; }  // number of pushes applied
  [[nodiscard]] Window const& window() const { return window_; }
  [[nodiscard]] Clocks const& clocks() const { return clocks_; }
  // Returns the values, which do not change while the caller holds them: later versions are written elsewhere. Must not
  // be called between prepare() of a change in place and finish(). On a GPU: a copy of this version, or null if there
  // is none yet. download() makes the copy and waits for the device; keep() stores it.
  [[nodiscard]] std::shared_ptr<tensors::Block const> values() const { return values_; }
  [[nodiscard]] Result<std::shared_ptr<tensors::Block>> download() const;
  void keep(std::shared_ptr<tensors::Block> values) { values_ = std::move(values); }
  // Returns null if the shard is in host memory.
  [[nodiscard]] devices::GpuUnit* gpu() const { return gpu_ ? &gpu_->unit() : nullptr; }

  // Copies rows, also lazy rows that do not exist yet; `into` has the size of all of them. Allowed when values() is,
  // and values() must not be null. Requires a shard of whole rows, and rows in its range.
  void copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into) const;
  // Returns the number of existing rows; nothing without lazy rows.
  [[nodiscard]] std::optional<std::uint64_t> rows() const { return index_ ? std::optional(rows_count_) : std::nullopt; }
  [[nodiscard]] std::uint64_t value_bytes() const { return gpu_ ? spec_.bytes() : values_->size_bytes(); }  // of memory

  // Checks a push from outside, before its turn is known. Problems: length_mismatch, invalid_field (rows), bad_request
  // (no clock, or a client whose clock does not count).
  [[nodiscard]] std::optional<http::Problem> refuse(Push const& push) const;
  // The two parts of refuse(). The first reads all row numbers and may be called on any thread.
  [[nodiscard]] static std::optional<http::Problem> refuse_data(ShardSpec const& spec, Push const& push);
  [[nodiscard]] std::optional<http::Problem> refuse_client(Push const& push) const;

  enum class Turn { now, seen, later };
  // Problems: epoch_fenced for a push of an older incarnation of the client; out_of_order for a clock that has passed;
  // mismatch for rows in a round of whole gradients; unavailable if too many clients are remembered.
  [[nodiscard]] http::Checked<Turn> turn(Push const& push) const;
  // Checks that a push whose turn is now does not create too many rows. May read the rows of the whole round; may be
  // called on any thread while no other call uses the shard. Problem: rows_exhausted.
  [[nodiscard]] std::optional<http::Problem> lacks_room(Push const& push) const;
  [[nodiscard]] std::uint64_t rows_to_look_at(Push const& push) const;
  // Returns what a push with the turn `later` waits for, for people.
  [[nodiscard]] std::string why_later(Push const& push) const;

  // The application of a push whose turn is now. begin() and then compute() may run on any threads while no other call
  // uses the shard.
  class Change {
   public:
    // On a GPU: does the whole change and waits for the device. After an error, a GpuErrc, the shard's state is
    // unknown.
    [[nodiscard]] Status begin() { return begin_ ? begin_() : ok(); }
    // compute() must be called for [0, elements()) in parts, each element once, on one thread or several.
    [[nodiscard]] std::uint64_t elements() const { return compute_ ? elements_ : 0; }
    void compute(std::uint64_t first, std::uint64_t count) const { compute_(first, count); }
    // Calls begin() and compute() on this thread.
    [[nodiscard]] Status compute_all() {
      auto begun = begin();
      if (begun && elements() > 0) compute(0, elements());
      return begun;
    }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }     // approximate number of bytes read and written
    [[nodiscard]] bool is_in_place() const { return is_in_place_; }  // values() are being written, or are not available
    // Returns true if values and rows of the shard must not be read meanwhile.
    [[nodiscard]] bool excludes_readers() const { return is_in_place_ || !created_.empty(); }

   private:
    friend class Shard;
    Push push_;
    std::function<Status()> begin_;
    std::function<void(std::uint64_t first, std::uint64_t count)> compute_;
    std::uint64_t elements_ = 0;
    std::uint64_t bytes_ = 0;
    bool is_in_place_ = false;
    bool is_on_gpu_ = false;                  // the change replaces the values on a GPU
    std::vector<std::uint64_t> created_;      // rows that do not exist yet, ascending
    std::shared_ptr<tensors::Block> target_;  // the new values; null: unchanged
  };
  // Allocates the memory for a change; does not change the shard. Errors: TensorErrc::out_of_memory;
  // GpuErrc::out_of_memory for pinned memory, and lost.
  [[nodiscard]] Result<Change> prepare(Push push);
  void finish(Change change);

  // Returns what a reader at this clock waits for, for people.
  [[nodiscard]] std::string why_clock_waits(std::uint64_t clock) const;

  // Copies the whole state. Waits for the device. Errors: out_of_memory; GpuErrc.
  [[nodiscard]] Result<ShardImage> image();
  [[nodiscard]] api::ShardState state() const;  // the state without the arrays

  // Restores an image into a shard that was just made: place_for() returns the memory of each array, `bytes` long, to
  // be filled; then restore() sets the rest. Empty, or false: the shard has no such array or state.
  [[nodiscard]] std::span<std::byte> place_for(std::string_view array, std::uint64_t bytes);
  // The same for an array that is per element of the shard. Nothing: there is no such array.
  [[nodiscard]] std::optional<std::span<std::byte>> place_for(std::string_view array);
  // On a GPU, before restore(): copies the arrays to the device. Waits for the device. Errors: GpuErrc.
  [[nodiscard]] Status settle();
  [[nodiscard]] bool restore(api::ShardState const& state);

 private:
  Shard(ShardSpec spec, tensors::Pool& pool, Optimizer optimizer, Initializer initializer);
  [[nodiscard]] bool completes_round(Push const& push) const;
  [[nodiscard]] Status prepare_values(Change& change);
  [[nodiscard]] Status prepare_round(Change& change, Push const* last);
  [[nodiscard]] std::vector<Push const*> in_client_order(Push const* last) const;
  [[nodiscard]] Status prepare_step(Change& change, std::vector<Push> gradients);
  [[nodiscard]] Gradient merge(std::span<Push const> pushes, MergedRows& merged) const;

  // For shards on a GPU.
  [[nodiscard]] Status prepare_gpu_values(Change& change);
  [[nodiscard]] Status prepare_gpu_step(Change& change, std::vector<Push> gradients);
  [[nodiscard]] Status step_on_gpu(std::vector<Push> const& gradients, std::shared_ptr<tensors::Block> const& sum,
                                   std::shared_ptr<GpuElements::Slots> const& slots);
  [[nodiscard]] Status step_rows_on_gpu(std::vector<Push> const& gradients,
                                        std::shared_ptr<GpuElements::Slots> const& slots);
  [[nodiscard]] Status add_gpu_arrays(ShardImage& image) const;
  [[nodiscard]] std::span<std::byte> gpu_place_for(std::string_view array);

  // For lazy rows.
  [[nodiscard]] std::vector<std::uint64_t> created_by(std::span<Push const* const> pushes) const;
  [[nodiscard]] Status prepare_lazy_values(Change& change, std::uint64_t rows);
  [[nodiscard]] Status prepare_lazy_step(Change& change, std::vector<Push> gradients);
  [[nodiscard]] Status add_lazy_arrays(ShardImage& image);
  [[nodiscard]] std::span<std::byte> lazy_place_for(std::string_view array, std::uint64_t bytes);
  [[nodiscard]] bool restore_rows(std::uint64_t count);

  ShardSpec const spec_;
  tensors::Pool& pool_;
  Optimizer optimizer_;
  Initializer const initializer_;
  std::optional<RowIndex> index_;           // of lazy rows
  std::uint64_t rows_count_ = 0;            // in index_, at the last finish()
  std::unique_ptr<GpuElements> gpu_;        // on a GPU: values and state, except row_steps
  std::shared_ptr<tensors::Block> values_;  // lazy rows: existing rows, then free room; on a GPU: a copy
  std::uint64_t version_ = 0;
  std::uint64_t position_ = 0;
  Window window_;
  Clocks clocks_;
  std::vector<Push> held_;                                 // pushes of the open round
  std::vector<std::shared_ptr<tensors::Block>> arriving_;  // held pushes of an image that is being restored
  std::shared_ptr<tensors::Block> arriving_rows_, arriving_values_;
  std::map<std::string, std::shared_ptr<tensors::Block>, std::less<>> arriving_arrays_;  // for the GPU
};

}  // namespace chorus::parameters
