// One shard: values, optimizer, deduplication window, clocks. A state machine without sockets, threads or time: a
// caller whose push or read must wait asks again later.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "http/api/parameters/parameters.hpp"
#include "worker/parameters/shard/clocks.hpp"
#include "worker/parameters/shard/elements/elements.hpp"
#include "worker/parameters/shard/elements/image.hpp"
#include "worker/parameters/shard/elements/shard_memory.hpp"
#include "worker/parameters/shard/elements/spec.hpp"
#include "worker/parameters/shard/pushes/push.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::parameters {

// Used by one thread, except for Change. Some functions wait for the device if the shard is on a GPU. They say so, and
// may be called on any thread while no other call uses the shard.
class Shard {
 public:
  // Makes a shard with initial values and version 0. Waits for the device. Errors: those of Optimizer::make,
  // Initializer::make and Pool::acquire; GpuErrc.
  using Content = Elements::Content;  // to_come: filled with place_for, settle and restore
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
  [[nodiscard]] std::shared_ptr<tensors::Block const> values() const { return elements_->values(); }
  [[nodiscard]] Result<std::shared_ptr<tensors::Block>> download() const { return elements_->download(); }
  void keep(std::shared_ptr<tensors::Block> values) { elements_->keep(std::move(values)); }
  // Returns null if the shard is in host memory.
  [[nodiscard]] devices::GpuUnit* gpu() const { return elements_->gpu(); }

  // Copies rows, also lazy rows that do not exist yet; `into` has the size of all of them. Allowed when values() is,
  // and values() must not be null. Requires a shard of whole rows, and rows in its range.
  void copy_rows(std::span<std::uint64_t const> rows, std::span<std::byte> into) const {
    elements_->copy_rows(rows, into);
  }
  // Returns the number of existing rows; nothing without lazy rows.
  [[nodiscard]] std::optional<std::uint64_t> rows() const { return elements_->rows(); }
  [[nodiscard]] std::uint64_t value_bytes() const { return elements_->value_bytes(); }  // of memory

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
  [[nodiscard]] std::optional<http::Problem> lacks_room(Push const& push) const {
    return elements_->lacks_room(push, held_);
  }
  [[nodiscard]] std::uint64_t rows_to_look_at(Push const& push) const {
    return elements_->rows_to_look_at(push, held_);
  }
  // Returns what a push with the turn `later` waits for, for people.
  [[nodiscard]] std::string why_later(Push const& push) const;

  // The application of a push whose turn is now. begin() and then compute() may run on any threads while no other call
  // uses the shard.
  class Change {
   public:
    // On a GPU: does the whole change and waits for the device. After an error, a GpuErrc, the shard's state is
    // unknown.
    [[nodiscard]] Status begin() { return work_.begin ? work_.begin() : ok(); }
    // compute() must be called for [0, elements()) in parts, each element once, on one thread or several.
    [[nodiscard]] std::uint64_t elements() const { return work_.compute ? work_.elements : 0; }
    void compute(std::uint64_t first, std::uint64_t count) const { work_.compute(first, count); }
    // Calls begin() and compute() on this thread.
    [[nodiscard]] Status compute_all() {
      auto begun = begin();
      if (begun && elements() > 0) compute(0, elements());
      return begun;
    }
    [[nodiscard]] std::uint64_t bytes() const { return work_.bytes; }  // approximate number of bytes read and written
    [[nodiscard]] bool is_in_place() const { return work_.is_in_place; }  // values() are not available meanwhile
    // Returns true if values and rows of the shard must not be read meanwhile.
    [[nodiscard]] bool excludes_readers() const { return work_.is_in_place || work_.creates_rows; }

   private:
    friend class Shard;
    Push push_;
    ElementsChange work_;
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
  [[nodiscard]] std::optional<std::span<std::byte>> place_for(std::string_view array) {
    return elements_->place_for(array);
  }
  // Call it before settle() and restore() if only the arrays `present` have been filled, because another optimizer
  // wrote the image. The optimizer's other arrays begin anew: the master copy with the values, the moments with step 0.
  // False: out of memory.
  [[nodiscard]] bool begin_arrays_without(std::vector<std::string> const& present, api::ShardState& state) {
    return elements_->begin_arrays_without(present, state);
  }
  // On a GPU, before restore(): copies the arrays to the device. Waits for the device. Errors: GpuErrc.
  [[nodiscard]] Status settle() { return elements_->settle(); }
  [[nodiscard]] bool restore(api::ShardState const& state);

 private:
  Shard(ShardSpec spec, tensors::Pool& pool);
  [[nodiscard]] bool completes_round(Push const& push) const;
  [[nodiscard]] bool ends_round(std::vector<std::string> const& clients) const;
  [[nodiscard]] Status prepare_round(Change& change, Push const* last);
  [[nodiscard]] std::vector<Push const*> in_client_order(Push const* last) const;

  ShardSpec const spec_;
  tensors::Pool& pool_;
  std::unique_ptr<Elements> elements_;
  std::uint64_t version_ = 0;
  std::uint64_t position_ = 0;
  Window window_;
  Clocks clocks_;
  std::vector<Push> held_;                                 // pushes of the open round
  std::vector<std::shared_ptr<tensors::Block>> arriving_;  // held pushes of an image that is being restored
};

}  // namespace chorus::parameters
