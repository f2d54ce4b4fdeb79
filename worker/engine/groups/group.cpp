#include "worker/engine/groups/group.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "collectives/core/assert.hpp"
#include "worker/engine/failure/errc.hpp"
#include "worker/engine/groups/group_calls.hpp"

namespace chorus {
namespace {

constexpr std::size_t prepared_max = 64;  // kinds of calls

}  // namespace

std::chrono::milliseconds time_left(std::chrono::steady_clock::time_point deadline) {
  auto const left = deadline - std::chrono::steady_clock::now();
  return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(left), std::chrono::milliseconds(1));
}

Group::Group(GroupMembership membership, engine::DataPlane& plane, engine::PlanCache& cache, GroupMemory memory)
    : membership_(std::move(membership)),
      plane_(plane),
      cache_(cache),
      memory_(memory),
      carried_calls_(memory.arena),
      messages_(membership_, plane) {}

Group::~Group() { messages_.end(engine::EngineErrc::aborted, "the group was left"); }

std::string_view Group::path() const {
  if (shared_) return "shm";
  return has_met_ || memory_.introduction == nullptr ? "links" : "unknown";
}

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
  CHORUS_ASSERT(options.gpu == nullptr || !memory_.may_share || memory_.introduction == nullptr,
                "who passes memory of a GPU has said so");
  Calling const calling(*this);
  if (auto why = standing_error()) return engine::failed(std::move(*why));
  if (!has_met_ && memory_.introduction != nullptr) {
    auto const deadline = std::chrono::steady_clock::now() + options.timeout;
    if (auto met = introduce(options.timeout); met.status.has_error()) {
      broken_ = met.status.error();
      return met;
    }
    auto rest = options;
    rest.timeout = time_left(deadline);
    return run_prepared({op, dtype, reduce, elements, rest}, input, output);
  }
  return run_prepared({op, dtype, reduce, elements, options}, input, output);
}

engine::RunResult Group::run_prepared(Request const& request, std::span<std::byte const> input,
                                      std::span<std::byte> output) {
  auto const prepared = prepare(request);
  if (prepared.has_error()) return engine::failed(prepared.error());
  if ((*prepared)->carried) {
    auto const as_it_is = [&](auto in, auto out) { return run_as_it_is(**prepared, request, in, out); };
    return carried_calls_.run((*prepared)->carried_call(request), input, output, std::cref(as_it_is));
  }
  return run_as_it_is(**prepared, request, input, output);
}

engine::RunResult Group::run_as_it_is(Prepared& prepared, Request const& request, std::span<std::byte const> input,
                                      std::span<std::byte> output) {
  return shared_ ? run_shared(prepared, request, input, output) : run_over_links(prepared, request, input, output);
}

engine::RunResult Group::run_in_pieces(Op op, std::span<std::byte const> input,
                                       std::span<std::span<std::byte> const> pieces, Dtype dtype, ReduceOp reduce,
                                       std::uint64_t elements, CallOptions const& options) {
  CHORUS_ASSERT(!has_blocks(op) && options.in_place == input.empty(), "in place there is nothing else");
  Calling const calling(*this);
  CHORUS_ASSERT(shared_ != nullptr, "members share memory");
  if (auto why = standing_error()) return engine::failed(std::move(*why));
  Request const request{op, dtype, reduce, elements, options};
  auto const prepared = prepare(request);
  if (prepared.has_error()) return engine::failed(prepared.error());
  if (auto wrong = (*prepared)->misfit(request, input.size(), pieces)) return engine::failed(std::move(*wrong));
  auto const& program = *(*prepared)->program;
  if ((*prepared)->carried) {
    auto const as_it_is = [&](auto in, auto out) { return run_as_it_is(**prepared, request, in, out); };
    return carried_calls_.run_in_pieces(
        (*prepared)->carried_call(request),
        {input, pieces, options.in_place, !program.input.empty(), !program.output.empty()}, std::cref(as_it_is));
  }
  auto result = shared_->run_in_pieces(*(*prepared)->call, sequence_, (*prepared)->description, input, pieces,
                                       options.timeout, &interruption_);
  ended(**prepared, result);
  return result;
}

engine::RunResult Group::meet(std::chrono::milliseconds timeout) {
  Calling const calling(*this);
  if (auto why = standing_error()) return engine::failed(std::move(*why));
  if (has_met_ || memory_.introduction == nullptr) return {};
  auto met = introduce(timeout);
  if (met.status.has_error()) broken_ = met.status.error();
  return met;
}

void Group::interrupt(engine::EngineErrc code, std::string const& why) {
  interruption_.interrupt(code, why);
  if (auto const run = running_.load(); run != 0) plane_.abort(run, Error(code, why));
  messages_.end(code, why);
}

void Group::fail(engine::EngineErrc code, std::string const& why) {
  interrupt(code, why);
  has_failed_.store(true);
  tell_if_failed();
}

void Group::tell_if_failed() {
  if (!has_failed_.load()) return;
  std::unique_lock const idle(calling_, std::try_to_lock);
  if (idle && shared_) shared_->leave(*interruption_.failure());
}

std::optional<Error> Group::standing_error() const {
  if (auto const interrupted = interruption_.failure()) return Error(interrupted->code, interrupted->detail());
  if (broken_)
    return Error(engine::EngineErrc::aborted, "the group is broken by an earlier failure: " + broken_->detail);
  return std::nullopt;
}

engine::RunResult Group::run_over_links(Prepared& prepared, Request const& request, std::span<std::byte const> input,
                                        std::span<std::byte> output) {
  if (!prepared.serves(request)) prepared.runs = runs_of(prepared, request);
  engine::RunCall const call{engine::local_run_number(membership_.name, membership_.epoch, sequence_), input, output,
                             std::chrono::steady_clock::now() + request.options.timeout};
  running_.store(call.run);
  auto result = plane_.run(prepared.runs, call, &interruption_);
  running_.store(0, std::memory_order_release);
  ended(prepared, result, call.run);
  return result;
}

std::shared_ptr<engine::RunKind> Group::runs_of(Prepared const& prepared, Request const& request) const {
  engine::RunSpec spec;
  spec.sizes = prepared.run_sizes();
  spec.group = membership_.name;
  spec.epoch = membership_.epoch;
  spec.token = membership_.token;
  spec.description = prepared.description;
  spec.fingerprint = prepared.fingerprint;
  spec.program = prepared.program;
  spec.members = membership_.members;
  spec.dtype = prepared.run_dtype();
  spec.reduce = prepared.run_reduce();
  spec.codes = engine::codes_between(prepared.compression, *prepared.program);
  spec.gpu = prepared.place(request.options.gpu);
  spec.segment_bytes = request.options.segment_bytes;
  spec.window = request.options.window;
  return std::make_shared<engine::RunKind>(std::move(spec));
}

engine::RunResult Group::gather(std::span<std::byte const> own, std::span<std::byte> all,
                                std::chrono::milliseconds timeout) {
  CallOptions how;
  how.algorithm = memory_.introduction;
  how.timeout = timeout;
  Request const request{Op::all_gather, Dtype::u8, ReduceOp::sum, all.size(), how};
  auto const prepared = prepare(request);
  if (prepared.has_error()) return engine::failed(prepared.error());
  return run_over_links(**prepared, request, own, all);
}

// Two rounds: members tell where their memory is, then whether they see the memory of all others.
engine::RunResult Group::introduce(std::chrono::milliseconds timeout) {
  auto const deadline = std::chrono::steady_clock::now() + timeout;
  auto const size = membership_.members.size();
  std::unique_ptr<engine::SharedGroup> shared;
  std::vector<engine::SharedCard> cards(size);
  engine::SharedCard card;
  if (!memory_.may_share) {
    why_not_shared_ = "this member may have tensors on a GPU";
  } else if (memory_.arena == nullptr) {
    why_not_shared_ = "this member has no memory to share";
  } else if (auto made = engine::SharedGroup::make(*memory_.arena, membership_.rank, membership_.members);
             made.has_error()) {
    why_not_shared_ = made.error().detail;
  } else {
    shared = std::move(*made);
    card = shared->card();
  }
  auto told = gather(std::as_bytes(std::span(&card, 1)), std::as_writable_bytes(std::span(cards)), timeout);
  if (told.status.has_error()) return told;
  if (shared)
    if (auto const met = shared->meet(cards, *memory_.regions); met.has_error()) {
      why_not_shared_ = met.error().detail;
      shared.reset();
    }
  std::byte const sees_all{static_cast<unsigned char>(shared ? 1 : 0)};
  std::vector<std::byte> all(size);
  told = gather(std::span(&sees_all, 1), all, time_left(deadline));
  if (told.status.has_error()) return told;
  has_met_ = true;
  for (std::size_t rank = 0; rank < size && shared; ++rank) {
    if (all[rank] == std::byte{1}) continue;
    why_not_shared_ =
        "rank " + std::to_string(rank) + " (" + membership_.members[rank].worker + ") does not see everybody's memory";
    shared.reset();
  }
  shared_ = std::move(shared);
  if (shared_) shared_->tell_of_stalls(plane_.flights(), membership_.name, membership_.epoch);
  prepared_.clear();  // made for links
  return told;
}

Result<Group::Prepared*> Group::prepare(Request const& request) {
  for (std::size_t i = 0; i < prepared_.size(); ++i)
    if (prepared_[i]->is(request)) {
      auto const found = prepared_.begin() + static_cast<std::ptrdiff_t>(i);
      if (i != 0) std::rotate(prepared_.begin(), found, found + 1);
      return prepared_.front().get();
    }
  auto const& algorithm = *request.options.algorithm;
  auto spec = request.spec(membership_.members.size());
  auto sizes = request.sizes();
  auto program = cache_.get(algorithm, spec, membership_.rank);
  if (program.has_error()) return program.error();
  if (auto const status = plan::check(**program, sizes); status.has_error()) return status.error();
  auto const fingerprint = request.fingerprint(spec, sizes);
  auto description = request.description(spec, sizes);
  auto const compression = request.options.compression;
  if (compression)
    if (auto const able = engine::check_compression(*compression, request.reduce, request.dtype, algorithm, spec);
        !able)
      return able.error();
  auto carried = engine::Carried::of(compression, request.reduce, request.dtype, algorithm, spec, sizes);
  auto prepared = std::make_unique<Prepared>(Prepared{&algorithm, std::move(spec), request.dtype, request.reduce,
                                                      std::move(sizes), std::move(*program), fingerprint,
                                                      request.options.agreement, std::move(description), compression,
                                                      std::move(carried), nullptr, nullptr, nullptr, 0});
  if (shared_) {
    auto made = engine::SharedCall::make(prepared->program, prepared->run_sizes(), prepared->run_dtype(),
                                         prepared->run_reduce(), fingerprint, *memory_.arena);
    if (made.has_error()) return made.error();
    prepared->call = std::move(*made);
  }
  if (prepared_.size() == prepared_max) prepared_.pop_back();
  prepared_.insert(prepared_.begin(), std::move(prepared));
  return prepared_.front().get();
}

engine::RunResult Group::run_shared(Prepared& prepared, Request const& request, std::span<std::byte const> input,
                                    std::span<std::byte> output) {
  auto const& call = *prepared.call;
  if (input.size() != call.input_bytes() || output.size() != call.output_bytes())
    return engine::failed(Error(engine::EngineErrc::aborted, "buffers of " + std::to_string(input.size()) + " and " +
                                                                 std::to_string(output.size()) + " bytes for " +
                                                                 std::to_string(call.input_bytes()) + " and " +
                                                                 std::to_string(call.output_bytes())));
  return run_shared(prepared, input, output, request.options.timeout);
}

// A function of its own, so that its only RunResult is constructed in the caller's object.
engine::RunResult Group::run_shared(Prepared& prepared, std::span<std::byte const> input, std::span<std::byte> output,
                                    std::chrono::milliseconds timeout) {
  auto result = shared_->run(*prepared.call, sequence_, prepared.description, input, output, timeout, &interruption_);
  ended(prepared, result);
  return result;
}

std::shared_ptr<engine::FlightKind> Group::kind_of(Prepared const& prepared) const {
  auto kind = std::make_shared<engine::FlightKind>();
  kind->group = membership_.name;
  kind->epoch = membership_.epoch;
  kind->op = prepared.spec.op;
  kind->algorithm = prepared.spec.algorithm;
  kind->rank = membership_.rank;
  kind->ranks = prepared.spec.ranks;
  kind->dtype = prepared.dtype;
  kind->elements = prepared.sizes.elements;
  for (auto const count : prepared.sizes.counts) kind->elements += count;
  kind->path = path();
  return kind;
}

// Successful calls over shared memory are noted in the lane; all others are slow enough to be recorded in full.
void Group::ended(Prepared& prepared, engine::RunResult& result, std::uint64_t run) {
  auto const sequence = sequence_++;
  bool const succeeded = result.status.has_value();
  if (!succeeded) {
    broken_ = result.status.error();
    messages_.end(engine::code_of(*broken_), broken_->detail);
  }
  auto* const flights = plane_.flights();
  if (flights == nullptr) return;
  if (prepared.kind == nullptr) {
    auto kind = kind_of(prepared);
    kind->statistics = result.statistics;
    if (shared_ && lane_ == nullptr) lane_ = flights->make_lane();
    if (shared_) prepared.kind_in_lane = lane_->add(kind);
    prepared.kind = std::move(kind);
  }
  if (shared_ && succeeded)
    return lane_->note(prepared.kind_in_lane, sequence, result.started, result.statistics.duration);
  engine::Flight flight;
  flight.kind = prepared.kind;
  flight.run = run != 0 ? run : engine::local_run_number(membership_.name, membership_.epoch, sequence);
  flight.state = succeeded ? "succeeded" : "failed";
  if (!succeeded) flight.error = result.status.error().code.message() + ": " + result.status.error().detail;
  flight.started = result.started;
  flight.statistics = result.statistics;
  if (result.trace) {
    flight.instructions = std::move(result.trace->instructions);
    flight.gpu_spans = std::move(result.trace->gpu_spans);
  }
  flights->add(std::move(flight));
}

}  // namespace chorus
