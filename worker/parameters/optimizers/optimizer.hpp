// Optimizers: one pass over values, gradient and state, with the same bits on every processor. So an owner and its
// backup that apply the same pushes in the same order hold the same shard.
#pragma once

#include <boost/align/aligned_allocator.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "collectives/core/result.hpp"
#include "http/api/parameters/optimizers.hpp"
#include "worker/parameters/optimizers/kernels.hpp"

namespace chorus::parameters {

// Little-endian elements, aligned to the element. `dtype` is that of the values; for values of f16 or bf16 also f32.
struct Gradient {
  std::span<std::byte const> bytes;
  Dtype dtype = Dtype::f32;
};

// A named array of the optimizer's state, which is replicated, moved and checkpointed together with the values.
struct StateArray {
  std::string_view name;            // "momentum"; static
  Dtype dtype = Dtype::f32;         // of the array
  std::uint64_t elements_each = 1;  // elements of the shard per element of the array: 1, or those of a row
  std::span<std::byte> bytes;
};

// One counted step: its properties that are the same for all elements. A value.
struct Step {
  std::uint64_t number = 0;  // from 1
  double scale = 1;          // factor of the gradient, from clipping by norm
  friend bool operator==(Step const&, Step const&) = default;
};

// The method, its settings and its state for the elements of one shard. Movable. Not thread-safe, except that parts of
// one step may be applied on several threads.
//
// State by method: none and sgd: nothing; momentum and nesterov: "momentum"; adagrad: "accumulator"; adam and adamw:
// "first_moment", "second_moment" and, if rows are stepped, "row_steps" (u64, one per row). The state has the dtype of
// the values, or f32 for f16 and bf16. For these every method except none also keeps "master", the values in f32: steps
// change the master and are rounded to the values once, so that small steps add up. none has no master: each push is
// added in f32 and rounded, like an all_reduce of two.
class Optimizer {
 public:
  // elsewhere: another object keeps the state, except row_steps, and steps the elements: see GpuElements.
  enum class State : std::uint8_t { here, elsewhere };
  // `settings` are complete (see api::complete). row_elements: elements of a row, needed for step_rows; `elements` is
  // then a whole number of rows. Errors: unsupported_dtype (integers allow only none), out_of_memory.
  [[nodiscard]] static Result<Optimizer> make(api::OptimizerSettings const& settings, Dtype dtype,
                                              std::uint64_t elements, std::uint64_t row_elements = 0,
                                              State state = State::here);

  // Copies values that were set from outside (a new parameter, a PUT, a new row) to the master copy, from first_element
  // on. Moments are kept.
  void adopt(std::span<std::byte const> values, std::uint64_t first_element);

  // Counts a step. gradient_norm: of the whole push (see squared_norm); used if settings().clip_norm is set. A norm
  // that is not finite scales nothing, because the non-finite policy has accepted the push.
  [[nodiscard]] Step begin_step(std::optional<double> gradient_norm = std::nullopt);

  // Applies a part of a step to `values`, the elements from first_element on, by as many elements of the gradient. Each
  // element at most once per step, in any order.
  void apply(Step const& step, std::span<std::byte> values, std::uint64_t first_element, Gradient gradient);

  // Calls begin_step() and apply() for the whole shard. Without gradient_norm, clipping uses the norm of `gradient`.
  void step(std::span<std::byte> values, Gradient gradient, std::optional<double> gradient_norm = std::nullopt);

  // Steps these rows only, each at most once. `gradient` has one row for each, in their order; `values` is the whole
  // shard. Other rows do not change, and their moments do not decay. Bias correction counts the steps of a row: dense
  // steps and its own. Not counted in steps(). `rows` are below elements() / row_elements. Without gradient_norm,
  // clipping uses the norm of `gradient`. Parts of a step, with different rows, may be computed on several threads.
  void step_rows(std::span<std::byte> values, std::span<std::uint64_t const> rows, Gradient gradient,
                 std::optional<double> gradient_norm = std::nullopt);

  // Appends elements with initial state, for new lazy rows. Takes amortized constant time per element. Errors:
  // out_of_memory; then nothing has changed.
  [[nodiscard]] Status grow(std::uint64_t elements);

  // For steps that another object computes (State::elsewhere): the number of elements from first_element on, before
  // `end`, that have the same step count, and their step. Rows with equal numbers of own steps have the same count.
  struct Portion {
    std::uint64_t elements = 0;
    Step step;
  };
  [[nodiscard]] Portion portion(Step const& step, std::uint64_t first_element, std::uint64_t end) const;
  // The same for a single row: counts a step of this row.
  [[nodiscard]] Step begin_row_step(std::uint64_t row, std::optional<double> gradient_norm);
  [[nodiscard]] std::optional<Method> method() const { return method_; }  // empty for the method none
  // The parameters of a step that are the same for all elements, and whether they change the gradient first.
  [[nodiscard]] Coefficients coefficients(Step const& step) const;
  [[nodiscard]] bool shapes_gradient(Coefficients const& coefficients) const;
  struct ArrayElsewhere {
    std::string_view name;  // static
    Dtype dtype = Dtype::f32;
    double initial = 0;  // of every element
  };
  [[nodiscard]] std::vector<ArrayElsewhere> state_elsewhere() const;

  // Returns the state for reading, and for overwriting, together with set_steps, when a shard is restored. grow()
  // invalidates the spans.
  [[nodiscard]] std::vector<StateArray> state();
  void set_steps(std::uint64_t steps) { steps_ = steps; }

  [[nodiscard]] std::uint64_t steps() const { return steps_; }  // number of dense steps
  [[nodiscard]] std::uint64_t elements() const { return elements_; }
  [[nodiscard]] Dtype dtype() const { return dtype_; }
  [[nodiscard]] api::OptimizerSettings const& settings() const { return settings_; }
  // Returns true if begin_step and step_rows need the norm of the whole push.
  [[nodiscard]] bool wants_norm() const { return settings_.clip_norm.has_value(); }

 private:
  using Bytes = std::vector<std::byte, boost::alignment::aligned_allocator<std::byte, 64>>;
  struct Slot {
    std::string_view name;
    Dtype dtype;
    std::uint64_t elements_each;
    double initial;  // of every element
    State where;
    Bytes bytes;
  };

  Optimizer() = default;
  void add_slots();
  // What a step does to every element, for gradients of a dtype.
  struct Rule {
    Coefficients coefficients;
    StepKernels::StepLoop loop = nullptr;  // null for the method none
  };
  [[nodiscard]] Rule rule(Step const& step, Dtype gradient) const;
  void run(Rule const& rule, std::span<std::byte> values, std::uint64_t first_element, Gradient gradient);
  void add(std::span<std::byte> values, Gradient gradient) const;
  [[nodiscard]] Step make_step(std::uint64_t number, std::optional<double> gradient_norm) const;
  [[nodiscard]] std::uint64_t row_steps(std::uint64_t row) const;
  [[nodiscard]] std::byte* slot_at(std::size_t slot, std::uint64_t element);

  api::OptimizerSettings settings_;
  Dtype dtype_ = Dtype::f32;
  std::uint64_t elements_ = 0;
  std::uint64_t row_elements_ = 0;
  std::uint64_t steps_ = 0;
  State state_ = State::here;
  std::optional<Method> method_;  // empty for the method none
  std::vector<Slot> slots_;       // the method's own arrays, then master and row_steps if they are kept
  std::optional<std::size_t> master_;
  std::optional<std::size_t> row_steps_;
};

// Returns the sum of the squares in double, in an order that is the same on every processor. The norm of a push is the
// square root of these sums, added in the order of its parts. Floating-point dtypes only.
[[nodiscard]] double squared_norm(Gradient gradient);

}  // namespace chorus::parameters
