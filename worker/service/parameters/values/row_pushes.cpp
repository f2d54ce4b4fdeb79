#include "worker/service/parameters/values/row_pushes.hpp"
#include "worker/parameters/serving/access/row_calls.hpp"

#include <algorithm>

#include "worker/service/memory/prepared_memory.hpp"
#include "worker/service/parameters/requests/parameter_tags.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using parameters::Access;
using std::chrono::steady_clock;

// Resolves the answer at the end of a task, also of a cancelled one.
struct Answering {
  std::shared_ptr<Pending<Checked<Access::Outcome>>> pending;
  Checked<Access::Outcome> answer = Problem(ProblemCode::unavailable, "the worker stops; repeat the same push");

  explicit Answering(std::shared_ptr<Pending<Checked<Access::Outcome>>> p) : pending(std::move(p)) {}
  ~Answering() { Pending<Checked<Access::Outcome>>::resolve(pending, std::move(answer)); }
  Answering(Answering const&) = delete;
  Answering& operator=(Answering const&) = delete;
};

// Large parts are passed on in pieces of this size.
constexpr std::uint64_t piece_bytes = 1 << 20;

}  // namespace

// The rows of one owner, which arrive.
struct RowPushes::Part {
  Part(boost::asio::any_io_executor executor, parameters::PlacementPtr p, std::uint32_t s)
      : placement(std::move(p)), shard(s), has_arrived(std::move(executor)) {}

  [[nodiscard]] bool is_whole() const { return arrived == block->size_bytes(); }
  // Returns false if the body ended before.
  awaitable<bool> wait_for(std::uint64_t bytes) {
    while (arrived < bytes && !is_over) co_await has_arrived.wait_until(http::TimePoint::max());
    co_return arrived >= bytes;
  }
  [[nodiscard]] http::TimePoint deadline() const { return steady_clock::now() + patience; }

  parameters::PlacementPtr placement;
  std::uint32_t shard = 0;
  parameters::Push push;  // without data until the part is whole
  std::shared_ptr<ArrivingBlock> block;
  std::uint64_t arrived = 0;  // bytes, from the start
  bool is_over = false;       // no more bytes come
  http::Condition has_arrived;
  // For each request to an owner; a client may send slowly.
  steady_clock::duration patience{};
};

// Tells of the bytes that have arrived, and that no more come, also if the request is cancelled.
class RowPushes::Receiving {
 public:
  explicit Receiving(Part& part) : part_(part) {}
  ~Receiving() {
    part_.is_over = true;
    part_.has_arrived.notify_all();
  }
  Receiving(Receiving const&) = delete;
  Receiving& operator=(Receiving const&) = delete;
  void has(std::uint64_t more_bytes) const {
    part_.arrived += more_bytes;
    part_.has_arrived.notify_all();
  }

 private:
  Part& part_;
};

awaitable<void> RowPushes::stop() {
  parts_.cancel();
  co_await parts_.join();
}

awaitable<RowPushes::Answer> RowPushes::push(parameters::PlacementPtr placement, parameters::Push push,
                                             http::Body& body, http::TimePoint deadline) {
  auto const patience = deadline - steady_clock::now();
  auto const width = placement->row_elements;
  auto const row_bytes = width * element_bytes(push.dtype);
  auto const index = co_await receive_prepared(body, push.rows * sizeof(std::uint64_t), tools_.pool, tools_.helper);
  if (!index) co_return index.error();
  auto const numbers = co_await tools_.reader.checked_rows(*index, push.rows, 0, {0, placement->elements / width});
  if (!numbers) co_return numbers.error();
  std::vector<AnswerPtr> pending_answers;
  // Every shard gets every sequence number, even without a row, because it expects the numbers in order.
  for (auto const& owner : placement->owners) {
    auto const rows = parameters::part_of(*numbers, parameters::row_range_of(owner, width));
    auto const own_numbers = std::as_bytes(numbers->subspan(rows.first, rows.count));
    auto const part = std::make_shared<Part>(tools_.executor, placement, owner.shard);
    part->patience = patience;
    part->push = push;
    part->push.rows = rows.count;
    auto const block = ArrivingBlock::announce(tools_.pool, tools_.helper, own_numbers.size() + rows.count * row_bytes);
    if (!block) co_return to_problem(block.error());
    part->block = *block;
    pending_answers.push_back(std::make_shared<Pending<Answer>>(tools_.executor));
    parts_.spawn("rows of " + placement->parameter.name, push_part(part, pending_answers.back()));
    if (auto problem = co_await receive(part, own_numbers, body)) co_return std::move(*problem);
  }
  std::vector<Access::Outcome> outcomes;
  std::optional<Problem> problem;
  for (auto const& pending : pending_answers) {
    auto answer = co_await pending->take();
    if (answer)
      outcomes.push_back(std::move(*answer));
    else if (!problem)
      problem = answer.error();
  }
  if (problem) co_return std::move(*problem);
  co_return Access::joined(outcomes);
}

awaitable<std::optional<Problem>> RowPushes::receive(PartPtr part, std::span<std::byte const> row_numbers,
                                                     http::Body& body) {
  Receiving const receiving(*part);
  auto& block = *part->block;
  if (auto problem = co_await block.copy(row_numbers, 0)) co_return std::move(*problem);
  receiving.has(row_numbers.size());
  while (!part->is_whole()) {
    auto const bytes = std::min(piece_bytes, block.size_bytes() - part->arrived);
    auto const read = co_await block.read(body, part->arrived, bytes);
    if (!read) co_return read.error();
    receiving.has(bytes);
  }
  co_return std::nullopt;
}

awaitable<void> RowPushes::push_part(PartPtr part, AnswerPtr pending) {
  Answering answering(std::move(pending));
  answering.answer = co_await answer_of(std::move(part));
}

awaitable<RowPushes::Answer> RowPushes::answer_of(PartPtr part) {
  auto const host = tools_.book.find(part->placement->parameter.name, part->shard);
  if (!host)
    if (auto answer = co_await push_in_pieces(part)) co_return std::move(*answer);
  if (!co_await part->wait_for(part->block->size_bytes()))
    co_return Problem(ProblemCode::bad_request,
                      "the body ended before the rows of shard " + std::to_string(part->shard) + " had arrived");
  part->push.data = part->block->block();
  if (host) {
    auto const answer = co_await (*host)->push(part->push, part->deadline());
    if (answer) {
      Access::Outcome here;
      here.epoch = answer->epoch;
      here.version = answer->version;
      here.tags = {tag_of(answer->epoch, answer->version)};
      here.next_sequence = answer->next_sequence;
      here.duplicate = answer->duplicate;
      co_return here;
    }
    auto const code = answer.error().code;
    if (code != ProblemCode::misdirected && code != ProblemCode::unavailable) co_return answer.error();
    // The shard may have another owner, which knows whether the push was applied.
  }
  co_return co_await tools_.access.push_rows_of(part->placement, part->shard, std::move(part->push), part->deadline());
}

// Nothing: the part is small, or the owner has changed meanwhile; it is pushed as a whole.
awaitable<std::optional<RowPushes::Answer>> RowPushes::push_in_pieces(PartPtr part) {
  auto const total = part->block->size_bytes();
  if (total <= piece_bytes) co_return std::nullopt;
  for (std::uint64_t offset = 0;;) {
    Access::Part piece;
    piece.shard = part->shard;
    piece.range = {offset, std::min(piece_bytes, total - offset)};
    piece.is_last = offset + piece.range.length == total;
    offset += piece.range.length;
    if (!co_await part->wait_for(offset)) co_return std::nullopt;
    auto const& block = part->block->block();
    parameters::Room const room{block, block->bytes().subspan(piece.range.first, piece.range.length)};
    auto outcome = co_await tools_.access.push_piece(part->placement, part->push, piece, total, room, part->deadline());
    auto const code = outcome ? std::nullopt : std::optional(outcome.error().code);
    if (code == ProblemCode::out_of_order || code == ProblemCode::unsupported) co_return std::nullopt;
    if (!outcome || piece.is_last) co_return outcome;
  }
}

}  // namespace chorus::service
