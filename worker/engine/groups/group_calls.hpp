// What a Group keeps of the current call, and of every kind of call. Internal to Group.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "worker/engine/groups/carried.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/engine/run/run_kind.hpp"
#include "worker/engine/shm/shared_group.hpp"
#include "worker/engine/trace/run_identity.hpp"

namespace chorus {

struct Group::Request {
  Op op;
  Dtype dtype;
  ReduceOp reduce;
  std::uint64_t elements;
  CallOptions const& options;

  [[nodiscard]] plan::Spec spec(std::size_t ranks) const {
    return {op,
            std::string(options.algorithm->name),
            static_cast<std::uint32_t>(ranks),
            options.root,
            options.arity,
            options.in_place,
            options.shape,
            options.by_position};
  }
  [[nodiscard]] std::string description(plan::Spec const& spec, plan::Sizes const& sizes) const {
    return engine::describe(spec, dtype, sizes, reduce, options.agreement, compression());
  }
  [[nodiscard]] std::uint64_t fingerprint(plan::Spec const& spec, plan::Sizes const& sizes) const {
    return engine::fingerprint(spec, dtype, sizes, reduce, options.agreement, compression());
  }
  [[nodiscard]] std::string compression() const {
    return options.compression ? to_string(*options.compression) : std::string();
  }
  [[nodiscard]] plan::Sizes sizes() const {
    return {options.counts.empty() ? elements : 0, options.counts, options.receive_counts};
  }
};

// A kind of call, prepared by its first call for all later ones.
struct Group::Prepared {
  plan::Algorithm const* algorithm;
  plan::Spec spec;
  Dtype dtype;
  ReduceOp reduce;
  plan::Sizes sizes;
  std::shared_ptr<plan::Program const> program;
  std::uint64_t fingerprint;
  std::uint64_t agreement;
  std::string description;
  std::optional<Compression> compression;
  std::optional<engine::Carried> carried;          // then runs use its dtype, reduction and sizes
  std::unique_ptr<engine::SharedCall> call;        // null over links
  std::shared_ptr<engine::RunKind> runs;           // over links, after the first run
  std::shared_ptr<engine::FlightKind const> kind;  // after the first report to the flight recorder
  std::uint32_t kind_in_lane = 0;                  // over shared memory: its number in the lane

  // Dtype, reduction and sizes of the runs.
  [[nodiscard]] Dtype run_dtype() const { return carried ? carried->dtype() : dtype; }
  [[nodiscard]] ReduceOp run_reduce() const { return carried ? carried->reduce() : reduce; }
  [[nodiscard]] plan::Sizes run_sizes() const { return carried ? carried->sizes() : sizes; }
  [[nodiscard]] devices::GpuUnit* place(devices::GpuUnit* gpu) const { return carried ? carried->place(gpu) : gpu; }
  // Of a call whose data travels in another form.
  [[nodiscard]] engine::CarriedCalls::Call carried_call(Request const& r) const {
    return {*carried, dtype, r.options.gpu, r.options.error_feedback};
  }
  // True if `runs` fits the parts in which calls of one kind may differ.
  [[nodiscard]] bool serves(Request const& r) const {
    return runs && runs->spec().gpu == place(r.options.gpu) && runs->spec().segment_bytes == r.options.segment_bytes &&
           runs->spec().window == r.options.window;
  }

  // Error if the memory of a call in pieces does not have the sizes that the program needs.
  [[nodiscard]] std::optional<Error> misfit(Request const& r, std::uint64_t input_bytes,
                                            std::span<std::span<std::byte> const> pieces) const {
    std::uint64_t bytes = 0;
    for (auto const& piece : pieces) bytes += piece.size();
    auto const expected = r.elements * element_bytes(dtype);
    auto const expected_input = spec.in_place || program->input.empty() ? 0 : expected;
    if (bytes == expected && input_bytes == expected_input) return std::nullopt;
    return Error(engine::EngineErrc::aborted, "an input of " + std::to_string(input_bytes) + " bytes and pieces of " +
                                                  std::to_string(bytes) + " together for " +
                                                  std::to_string(expected_input) + " and " + std::to_string(expected));
  }

  // Compares part by part: making a spec would cost as much as a small call.
  [[nodiscard]] bool is(Request const& r) const {
    auto const& o = r.options;
    return algorithm == o.algorithm && spec.op == r.op && dtype == r.dtype && reduce == r.reduce &&
           sizes.elements == (o.counts.empty() ? r.elements : 0) && spec.in_place == o.in_place &&
           agreement == o.agreement && compression == o.compression && spec.root == o.root && spec.arity == o.arity &&
           (has_no_lists(o) || (spec.shape == o.shape && spec.by_position == o.by_position &&
                                sizes.counts == o.counts && sizes.receive_counts == o.receive_counts));
  }
  [[nodiscard]] bool has_no_lists(CallOptions const& o) const {
    return spec.shape.empty() && o.shape.empty() && spec.by_position.empty() && o.by_position.empty() &&
           sizes.counts.empty() && o.counts.empty() && sizes.receive_counts.empty() && o.receive_counts.empty();
  }
};

}  // namespace chorus
