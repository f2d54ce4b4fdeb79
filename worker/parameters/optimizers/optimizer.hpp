// What a push does to a shard: one pass over values, gradient and state, with the same bits on every processor, so that
// an owner and its backup that apply the same pushes in the same order hold the same shard.
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
#include "http/api/optimizers.hpp"
#include "worker/parameters/optimizers/kernels.hpp"

namespace chorus::parameters {

// Little-endian elements in any place that is aligned to the element. `dtype` is that of the values or, where that is
// f16 or bf16, also f32.
struct Gradient {
  std::span<std::byte const> bytes;
  Dtype dtype = Dtype::f32;
};

// A named array that belongs to a shard as much as its values do: it is replicated, moved and checkpointed with them.
struct StateArray {
  std::string_view name;            // "momentum"; static
  Dtype dtype = Dtype::f32;         // of the array
  std::uint64_t elements_each = 1;  // elements of the shard per element of the array: 1, or those of a row
  std::span<std::byte> bytes;
};

// One step that has been counted, with everything about it that is the same for all elements. A value.
struct Step {
  std::uint64_t number = 0;  // from 1
  double scale = 1;          // of the gradient: what clipping by the norm asks for
};

// The method, its settings and its state for the elements of one shard. Movable; not for concurrent use, except that
// parts of one step may be applied on several threads.
//
// State, by method: none and sgd keep nothing; momentum and nesterov "momentum"; adagrad "accumulator"; adam and adamw
// "first_moment" and "second_moment"; and, of those two, if rows are stepped, "row_steps" (u64, one per row). It has
// the dtype of the values, or f32 where they are f16 or bf16. For those every method but none also keeps "master", the
// values in f32: steps go there and are rounded into the values once, so that steps too small for a half still add up.
// none has no master: like an all_reduce of two, each push is added in f32 and rounded.
class Optimizer {
 public:
  // elsewhere: somebody else keeps the state, all but row_steps, and takes the steps of all elements: see GpuElements.
  enum class State : std::uint8_t { here, elsewhere };
  // `settings` are complete (see api::complete). row_elements: of each row, if step_rows will be called; `elements` is
  // then a whole number of rows. Errors: unsupported_dtype (integers have only none), out_of_memory.
  [[nodiscard]] static Result<Optimizer> make(api::OptimizerSettings const& settings, Dtype dtype,
                                              std::uint64_t elements, std::uint64_t row_elements = 0,
                                              State state = State::here);

  // To be called with the values when they have been set from outside (a new parameter, a PUT, a new row): the master
  // copy of `values`, the elements from first_element on, begins there. Moments are kept.
  void adopt(std::span<std::byte const> values, std::uint64_t first_element);

  // Counts a step. gradient_norm: of the whole push (see squared_norm), where settings().clip_norm is set; otherwise
  // ignored. A norm that is not finite scales nothing: the non-finite policy has let it in.
  [[nodiscard]] Step begin_step(std::optional<double> gradient_norm = std::nullopt);

  // Applies a part of a step to `values`, the elements from first_element on; the gradient has as many. Every element
  // at most once per step, in any order.
  void apply(Step const& step, std::span<std::byte> values, std::uint64_t first_element, Gradient gradient);

  // Both, for the whole shard. Without a norm, clipping by norm takes that of this gradient.
  void step(std::span<std::byte> values, Gradient gradient, std::optional<double> gradient_norm = std::nullopt);

  // A step of these rows only, each at most once; `gradient` has one row for each, in their order; `values` is the
  // whole shard. Rows that are not named do not move, their moments do not decay, and bias correction counts the steps
  // that a row has seen: dense ones, and its own. Not counted in steps(). `rows` are less than elements() /
  // row_elements.
  void step_rows(std::span<std::byte> values, std::span<std::uint64_t const> rows, Gradient gradient,
                 std::optional<double> gradient_norm = std::nullopt);

  // More elements, behind those that there are, with the state of a fresh shard: rows that are created lazily. The time
  // is amortized. Errors: out_of_memory; then nothing has changed.
  [[nodiscard]] Status grow(std::uint64_t elements);

  // For who takes steps elsewhere: how many elements from first_element on, and before `end`, take the step alike, and
  // the step as they count it. Rows that have seen as many steps of their own do.
  struct Portion {
    std::uint64_t elements = 0;
    Step step;
  };
  [[nodiscard]] Portion portion(Step const& step, std::uint64_t first_element, std::uint64_t end) const;
  // The same for rows, which are stepped one by one: counts the step of this one.
  [[nodiscard]] Step begin_row_step(std::uint64_t row, std::optional<double> gradient_norm);
  [[nodiscard]] std::optional<Method> method() const { return method_; }  // none: none
  // Of a method: everything that is the same for all elements, and whether it makes anything else of the gradient.
  [[nodiscard]] Coefficients coefficients(Step const& step) const;
  [[nodiscard]] bool shapes_gradient(Coefficients const& coefficients) const;
  struct ArrayElsewhere {
    std::string_view name;  // static
    Dtype dtype = Dtype::f32;
    double initial = 0;  // of every element
  };
  [[nodiscard]] std::vector<ArrayElsewhere> state_elsewhere() const;

  // The state, to be read and, when a shard is restored, overwritten together with set_steps. Spans end with grow.
  [[nodiscard]] std::vector<StateArray> state();
  void set_steps(std::uint64_t steps) { steps_ = steps; }

  [[nodiscard]] std::uint64_t steps() const { return steps_; }  // dense ones
  [[nodiscard]] std::uint64_t elements() const { return elements_; }
  [[nodiscard]] Dtype dtype() const { return dtype_; }
  [[nodiscard]] api::OptimizerSettings const& settings() const { return settings_; }
  // Whether begin_step and step_rows want the norm of the whole push.
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
  void run(Step const& step, std::span<std::byte> values, std::uint64_t first_element, Gradient gradient);
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
  std::optional<Method> method_;  // none: none
  std::vector<Slot> slots_;       // the method's own arrays first, then master and row_steps where they are kept
  std::optional<std::size_t> master_;
  std::optional<std::size_t> row_steps_;
};

// The sum of the squares, in double, in an order that is the same on every processor and for the same bounds: norms of
// the parts of a push are the root of the sum of these, added in the order of the parts. Floating-point dtypes.
[[nodiscard]] double squared_norm(Gradient gradient);

}  // namespace chorus::parameters
