#include "worker/service/parameters/requests/parameter_gateway.hpp"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::Access;
using std::chrono::steady_clock;

constexpr std::chrono::seconds piece_patience{30};
constexpr std::chrono::seconds release_patience{1};

struct Reading {
  Access& access;
  parameters::PlacementPtr placement;
  std::vector<std::string> tags;
  std::string reader;
  http::ByteRange left;  // of the whole parameter
};

// A piece ends at the end of its shard.
awaitable<std::string> next_piece(std::shared_ptr<Reading> reading) {
  auto& left = reading->left;
  if (left.length == 0) co_return "";
  auto const size = element_bytes(reading->placement->dtype);
  auto const& owners = reading->placement->owners;
  auto const owner =
      std::ranges::find_if(owners, [&](auto const& candidate) { return left.first < candidate.elements[1] * size; });
  auto const end = owner->elements[1] * size;
  Access::Part part;
  part.shard = owner->shard;
  part.range = {left.first - owner->elements[0] * size,
                std::min({left.length, end - left.first, ParameterGateway::piece_bytes})};
  part.tag = reading->tags[owner->shard];
  part.is_last = part.range.length == std::min(left.length, end - left.first);
  auto const text = std::make_shared<std::string>(part.range.length, '\0');
  parameters::Room const room{text, std::as_writable_bytes(std::span(*text))};
  auto const outcome =
      co_await reading->access.pull_held(reading->placement, part, room, steady_clock::now() + piece_patience);
  // The header has been sent: the client sees the error as an early end.
  if (!outcome) throw boost::system::system_error(boost::asio::error::connection_aborted, outcome.error().detail);
  left.first += part.range.length;
  left.length -= part.range.length;
  // A request of its own, sent after the piece has arrived, because a piece whose answer was lost is asked for again.
  // Views that are not released expire.
  if (part.is_last)
    static_cast<void>(co_await reading->access.release_held(reading->placement, part, reading->reader,
                                                            steady_clock::now() + release_patience));
  co_return std::move(*text);
}

}  // namespace

awaitable<Checked<ParameterGateway::Found>> ParameterGateway::pull(parameters::PlacementPtr placement,
                                                                   Access::ReadConstraints constraints,
                                                                   http::ByteRange range, http::TimePoint deadline) {
  Found found;
  if (!constraints.tags.empty()) {
    auto tags = std::exchange(constraints.tags, {});
    auto seen = co_await access_.look(placement, constraints, "", deadline);
    if (!seen) co_return seen.error();
    found.outcome = std::move(*seen);
    found.outcome.unchanged = tags == found.outcome.tags;
    if (found.outcome.unchanged) co_return found;
  }
  auto const reader = self_ + '-' + std::to_string(readers_++);
  auto held = co_await access_.look(placement, constraints, reader, deadline);
  if (!held) co_return held.error();
  found.outcome = std::move(*held);
  auto const reading = std::make_shared<Reading>(Reading{access_, placement, found.outcome.tags, reader, range});
  found.stream = [reading] { return next_piece(reading); };
  co_return found;
}

bool ParameterGateway::can_pass_on(parameters::Placement const& placement, parameters::Push const& push) {
  auto const& parameter = placement.parameter;
  auto const is_norm_missing = parameter.optimizer.clip_norm && !push.norm && push.kind != parameters::PushKind::value;
  if (parameter.nonfinite == "reject" || is_norm_missing) return false;
  if (push.kind == parameters::PushKind::rows) return placement.has_whole_rows();
  return placement.elements * element_bytes(push.dtype) > buffered_bytes;
}

awaitable<Checked<Access::Outcome>> ParameterGateway::push(parameters::PlacementPtr placement, parameters::Push push,
                                                           http::Body& body, http::TimePoint deadline) {
  // The time limit is for the owners, not for a client that sends slowly.
  auto const patience = deadline - steady_clock::now();
  auto const size = element_bytes(push.dtype);
  auto const block = co_await acquire_prepared(pool_, helper_, piece_bytes);
  if (!block) co_return to_problem(block.error());
  std::vector<Access::Outcome> answers;
  for (auto const& owner : placement->owners) {
    auto const total = (owner.elements[1] - owner.elements[0]) * size;
    Access::Outcome last;
    for (std::uint64_t offset = 0; offset < total || (total == 0 && offset == 0);) {
      Access::Part part;
      part.shard = owner.shard;
      part.range = {offset, std::min(piece_bytes, total - offset)};
      part.is_last = offset + part.range.length == total;
      parameters::Room const room{*block, (*block)->bytes().first(part.range.length)};
      auto const read = co_await body.read_exactly(room.bytes);
      if (!read) co_return read.error();
      auto outcome = co_await access_.push_piece(placement, push, part, total, room, steady_clock::now() + patience);
      if (!outcome && outcome.error().code == ProblemCode::out_of_order && !part.is_last)
        co_return Problem(ProblemCode::unavailable, "the owner of shard " + std::to_string(part.shard) +
                                                        " has changed meanwhile; repeat the same push");
      if (!outcome) co_return outcome.error();
      last = std::move(*outcome);
      if (total == 0) break;
      offset += part.range.length;
    }
    answers.push_back(std::move(last));
  }
  co_return Access::joined(answers);
}

}  // namespace chorus::service
