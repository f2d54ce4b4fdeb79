#include "worker/engine/group.hpp"

#include <semaphore>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/engine/errc.hpp"
#include "worker/engine/run_identity.hpp"

namespace chorus {
namespace {

engine::RunResult failed(Error why) {
  engine::RunResult result;
  result.status = std::move(why);
  return result;
}

}  // namespace

struct Group::Call {
  std::binary_semaphore ended{0};  // half the system calls of a condition variable
  engine::RunResult result;
};

Group::Group(GroupMembership membership, engine::DataPlane& plane, plan::Cache& cache)
    : membership_(std::move(membership)), plane_(plane), cache_(cache), call_(std::make_shared<Call>()) {}

engine::RunResult Group::all_reduce(std::span<std::byte const> input, std::span<std::byte> output, Dtype dtype,
                                    ReduceOp reduce, CallOptions options) {
  CHORUS_ASSERT(input.size() == output.size() && input.size() % element_bytes(dtype) == 0, "whole elements, as many");
  options.in_place |= input.data() == output.data();
  return run(Op::all_reduce, input, output, dtype, reduce, input.size() / element_bytes(dtype), options);
}

engine::RunResult Group::barrier(CallOptions const& options) {
  std::byte const arrived{1};
  std::vector<std::byte> all(membership_.members.size());
  return run(Op::barrier, std::span(&arrived, 1), all, Dtype::u8, ReduceOp::sum, all.size(), options);
}

engine::RunResult Group::run(Op op, std::span<std::byte const> input, std::span<std::byte> output, Dtype dtype,
                             ReduceOp reduce, std::uint64_t elements, CallOptions const& options) {
  CHORUS_ASSERT(options.algorithm != nullptr, "the caller chooses an algorithm");
  std::lock_guard const lock(calling_);
  if (broken_)
    return failed(Error(engine::EngineErrc::aborted, "the group is broken by an earlier failure: " + broken_->detail));

  plan::Spec const plan_spec{op,
                             std::string(options.algorithm->name),
                             static_cast<std::uint32_t>(membership_.members.size()),
                             options.root,
                             options.arity,
                             options.in_place,
                             options.shape};
  auto program = cache_.get(*options.algorithm, plan_spec, membership_.rank);
  if (program.has_error()) return failed(program.error());

  engine::RunSpec spec;
  spec.sizes = {options.counts.empty() ? elements : 0, options.counts, options.receive_counts};
  if (auto const status = plan::check(**program, spec.sizes); status.has_error()) return failed(status.error());
  spec.run = engine::local_run_number(membership_.name, membership_.epoch, sequence_++);
  spec.epoch = membership_.epoch;
  spec.token = membership_.token;
  spec.description = engine::describe(plan_spec, dtype, spec.sizes, reduce);
  spec.fingerprint = engine::fingerprint(plan_spec, dtype, spec.sizes, reduce);
  spec.program = std::move(*program);
  spec.members = membership_.members;
  spec.dtype = dtype;
  spec.reduce = reduce;
  spec.input = input;
  spec.output = output;
  spec.segment_bytes = options.segment_bytes;
  spec.window = options.window;
  spec.deadline = std::chrono::steady_clock::now() + options.timeout;

  auto result = start_and_wait(std::move(spec));
  if (result.status.has_error()) broken_ = result.status.error();
  return result;
}

// The call is shared: once the caller is awake it may destroy the group, while the data thread is still about to
// return.
engine::RunResult Group::start_and_wait(engine::RunSpec spec) {
  plane_.start(std::move(spec), [call = call_](engine::RunResult result) {
    call->result = std::move(result);
    call->ended.release();
  });
  call_->ended.acquire();
  return std::move(call_->result);
}

}  // namespace chorus
