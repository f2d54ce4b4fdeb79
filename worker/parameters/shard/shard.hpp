// One shard: values, optimizer, the window of pushes that were seen, clocks. A state machine without sockets, threads
// or time: what waits is asked about again by who waits.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/api/parameters.hpp"
#include "http/message.hpp"
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

// What a shard is, and never changes.
struct ShardSpec {
  std::string parameter;
  std::uint32_t index = 0;
  Dtype dtype = Dtype::f32;
  std::uint64_t begin = 0, end = 0;  // elements of the parameter
  std::vector<std::uint64_t> shape;  // of the parameter
  std::uint64_t whole = 0;           // elements of the parameter
  std::uint64_t row_elements = 0;    // 0: the shard does not consist of whole rows, and rows cannot be selected
  std::int64_t staleness = -1;
  bool averages = false;  // in rounds: the mean of the gradients, not their sum
  NonFinite nonfinite = NonFinite::accept;
  api::OptimizerSettings optimizer;
  api::InitializerSettings initializer;
  std::uint64_t initial_row_elements = 1;  // of a row as the initializer counts them, also where shards cut rows
  std::vector<std::string> clients;        // at the beginning
  std::optional<std::uint64_t> lazy_rows;  // the most that may exist, where they are created lazily
  bool is_logged = false;                  // by its owner
  bool on_gpu = false;

  [[nodiscard]] std::uint64_t elements() const { return end - begin; }
  [[nodiscard]] bool is_whole() const { return elements() == whole; }
  [[nodiscard]] std::uint64_t bytes() const { return elements() * element_bytes(dtype); }
  [[nodiscard]] RowRange rows() const {
    return row_elements == 0 ? RowRange{} : RowRange{begin / row_elements, end / row_elements};
  }
  // Problems: invalid_field for what no coordinator would send.
  [[nodiscard]] static http::Checked<ShardSpec> from(api::ShardAssignment const& assignment);
};

// All that a shard is beside its spec, at one position; what its arrays refer to does not change any more.
struct ShardImage {
  struct Array {
    std::string name;  // "values", of the optimizer's state, "held/0", ...
    Dtype dtype = Dtype::u8;
    std::uint64_t elements_each = 0;  // elements of the shard per element; 0: it is not cut with the elements
    http::SharedBytes content;
  };
  api::ShardState state;
  std::vector<Array> arrays;
};

// Where shards' arrays lie. Both outlive the shards.
struct ShardMemory {
  // Implicit: most shards have the host's memory only.
  ShardMemory(tensors::Pool& host, devices::Gpus const* all = nullptr) : pool(host), gpus(all) {}

  // With the most free memory. Errors: GpuErrc::unavailable, lost.
  [[nodiscard]] Result<devices::GpuUnit*> roomiest_gpu() const;

  tensors::Pool& pool;
  devices::Gpus const* gpus;  // null: none
};

// Of Shard::make. Problems: unsupported without a GPU that works; unavailable.
[[nodiscard]] http::Problem why_not_made(Error const& error);

// In rounds: without the pushes that wait for the others of their round, which their clients push again. What remains
// is the shard as it was at the end of the last round.
void leave_open_round(ShardImage& image);

// For one thread; see Change for the exception. Of a shard on a GPU some functions wait for the device; they say so,
// and may be called on any thread while nothing else is done with the shard.
class Shard {
 public:
  // Fresh: initial values, version 0. Waits for the device. Errors: those of Optimizer::make, Initializer::make and
  // Pool::acquire; GpuErrc.
  enum class Content : std::uint8_t { initial, to_come };  // to_come: all of it, with place_for, settle and restore
  [[nodiscard]] static Result<std::unique_ptr<Shard>> make(ShardSpec spec, ShardMemory memory,
                                                           Content content = Content::initial);
  Shard(Shard const&) = delete;
  Shard& operator=(Shard const&) = delete;

  [[nodiscard]] ShardSpec const& spec() const { return spec_; }
  [[nodiscard]] std::uint64_t version() const { return version_; }    // of the values: one more with each change
  [[nodiscard]] std::uint64_t position() const { return position_; }  // pushes that were taken
  [[nodiscard]] Window const& window() const { return window_; }
  [[nodiscard]] Clocks const& clocks() const { return clocks_; }
  // Valid as they are for as long as they are held: later versions are written elsewhere meanwhile. Not to be taken
  // between prepare() of a change in place and finish(). Of a shard on a GPU: a copy of this version, or null, if there
  // is none yet: download() makes it, waiting for the device, and keep() takes it.
  [[nodiscard]] std::shared_ptr<tensors::Block const> values() const { return values_; }
  [[nodiscard]] Result<std::shared_ptr<tensors::Block>> download() const;
  void keep(std::shared_ptr<tensors::Block> values) { values_ = std::move(values); }
  // Null: in the host's memory.
  [[nodiscard]] devices::GpuUnit* gpu() const { return gpu_ ? &gpu_->unit() : nullptr; }

  // Rows as they are, also those that do not exist yet; `into` has the size of all of them. At the same times as
  // values(), which are not null. Of a shard of whole rows, with rows of it.
  void copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into) const;
  // That exist, where they are created lazily.
  [[nodiscard]] std::optional<std::uint64_t> rows() const {
    return index_ ? std::optional<std::uint64_t>(index_->size()) : std::nullopt;
  }
  [[nodiscard]] std::uint64_t value_bytes() const { return gpu_ ? spec_.bytes() : values_->size_bytes(); }  // of memory

  // What a push from outside is refused for, before anything is known of its turn. Problems: length_mismatch,
  // invalid_field (rows), bad_request (no clock, or a client whose clock does not count).
  [[nodiscard]] std::optional<http::Problem> refuse(Push const& push) const;

  enum class Turn { now, seen, later };
  // Problems: epoch_fenced from a former life of the client; out_of_order for a clock that has passed; mismatch for
  // rows in a round of whole gradients; unavailable above the most clients that are remembered; rows_exhausted.
  [[nodiscard]] http::Checked<Turn> turn(Push const& push) const;
  // Of a push that is told `later`: what it waits for, for people.
  [[nodiscard]] std::string why_later(Push const& push) const;

  // A push whose turn is now, on its way in. begin() and then compute() may run on any threads while the shard is left
  // alone otherwise.
  class Change {
   public:
    // Of a shard on a GPU: all of it; waits for the device. After an error, a GpuErrc, nobody knows what the shard has.
    [[nodiscard]] Status begin() { return begin_ ? begin_() : ok(); }
    // What compute() is to be called for: [0, elements()) in parts, each element once, on several threads if one likes.
    [[nodiscard]] std::uint64_t elements() const { return compute_ ? elements_ : 0; }
    void compute(std::uint64_t first, std::uint64_t count) const { compute_(first, count); }
    // Both, on this thread.
    [[nodiscard]] Status compute_all() {
      auto begun = begin();
      if (begun && elements() > 0) compute(0, elements());
      return begun;
    }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }     // that both go through, about
    [[nodiscard]] bool is_in_place() const { return is_in_place_; }  // values() are being written, or cannot be had

   private:
    friend class Shard;
    Push push_;
    std::function<Status()> begin_;
    std::function<void(std::uint64_t first, std::uint64_t count)> compute_;
    std::uint64_t elements_ = 0;
    std::uint64_t bytes_ = 0;
    bool is_in_place_ = false;
    bool is_on_gpu_ = false;                  // the values are other ones afterwards, there
    std::vector<std::uint64_t> created_;      // rows that do not exist yet, ascending
    std::shared_ptr<tensors::Block> target_;  // the values afterwards; null: as they were
  };
  // Takes the memory that it needs; changes nothing yet. Errors: TensorErrc::out_of_memory; GpuErrc::out_of_memory, of
  // pinned memory, and lost.
  [[nodiscard]] Result<Change> prepare(Push push);
  void finish(Change change);

  // What a reader at this clock waits for, for people.
  [[nodiscard]] std::string why_clock_waits(std::uint64_t clock) const;

  // A copy of all that it is. Waits for the device. Errors: out_of_memory; GpuErrc.
  [[nodiscard]] Result<ShardImage> image();
  [[nodiscard]] api::ShardState state() const;  // ... without its arrays

  // The other way round, into a shard that was just made: the memory of an array by its name, `bytes` long, to be
  // filled; then the rest. Empty, or false: an array or a state that this shard does not have.
  [[nodiscard]] std::span<std::byte> place_for(std::string_view array, std::uint64_t bytes);
  // Of an array that has elements as the shard has. Nothing: there is none of that name.
  [[nodiscard]] std::optional<std::span<std::byte>> place_for(std::string_view array);
  // Of a shard on a GPU, before restore(): puts there what has come. Waits for the device. Errors: GpuErrc.
  [[nodiscard]] Status settle();
  [[nodiscard]] bool restore(api::ShardState const& state);

 private:
  Shard(ShardSpec spec, tensors::Pool& pool, Optimizer optimizer, Initializer initializer);
  [[nodiscard]] std::optional<http::Problem> has_misfit(Push const& push) const;  // of its data
  [[nodiscard]] bool completes_round(Push const& push) const;
  [[nodiscard]] Status prepare_values(Change& change);
  [[nodiscard]] Status prepare_round(Change& change, Push const* last);
  [[nodiscard]] std::vector<Push const*> in_client_order(Push const* last) const;
  [[nodiscard]] Status prepare_step(Change& change, std::vector<Push> gradients);
  [[nodiscard]] Gradient merge(std::span<Push const> pushes, MergedRows& merged) const;

  // On a GPU.
  [[nodiscard]] Status prepare_gpu_values(Change& change);
  [[nodiscard]] Status prepare_gpu_step(Change& change, std::vector<Push> gradients);
  [[nodiscard]] Status step_on_gpu(std::vector<Push> const& gradients, std::shared_ptr<tensors::Block> const& sum,
                                   GpuElements::Slots& slots);
  [[nodiscard]] Status step_rows_on_gpu(std::vector<Push> const& gradients, GpuElements::Slots& slots);
  [[nodiscard]] Status add_gpu_arrays(ShardImage& image) const;
  [[nodiscard]] std::span<std::byte> gpu_place_for(std::string_view array);

  // Where rows are created lazily.
  [[nodiscard]] std::vector<std::uint64_t> created_by(std::span<Push const* const> pushes) const;
  [[nodiscard]] std::optional<http::Problem> lacks_room(Push const& push) const;
  [[nodiscard]] Status prepare_lazy_values(Change& change, std::uint64_t rows);
  [[nodiscard]] Status prepare_lazy_step(Change& change, std::vector<Push> gradients);
  [[nodiscard]] Status add_lazy_arrays(ShardImage& image);
  [[nodiscard]] std::span<std::byte> lazy_place_for(std::string_view array, std::uint64_t bytes);
  [[nodiscard]] bool restore_rows(std::uint64_t count);

  ShardSpec const spec_;
  tensors::Pool& pool_;
  Optimizer optimizer_;
  Initializer const initializer_;
  std::optional<RowIndex> index_;           // where rows are created lazily
  std::unique_ptr<GpuElements> gpu_;        // on a GPU: values and state, but for row_steps
  std::shared_ptr<tensors::Block> values_;  // lazily: of the rows that exist, and room behind them; on a GPU: a copy
  std::uint64_t version_ = 0;
  std::uint64_t position_ = 0;
  Window window_;
  Clocks clocks_;
  std::vector<Push> held_;                                 // of the open round
  std::vector<std::shared_ptr<tensors::Block>> arriving_;  // held, of an image that comes in
  std::shared_ptr<tensors::Block> arriving_rows_, arriving_values_;
  std::map<std::string, std::shared_ptr<tensors::Block>, std::less<>> arriving_arrays_;  // for the GPU
};

}  // namespace chorus::parameters
