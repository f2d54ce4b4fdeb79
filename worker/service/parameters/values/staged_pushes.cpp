#include "worker/service/parameters/values/staged_pushes.hpp"

#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

constexpr std::chrono::seconds push_patience{60};  // for a push that is never completed
constexpr std::size_t staged_max = 1024;

// Marks a piece as being received, so that no other is written into the block; cleared also on cancellation.
class Receiving {
 public:
  explicit Receiving(bool& flag) : flag_(flag) { flag_ = true; }
  ~Receiving() { flag_ = false; }
  Receiving(Receiving const&) = delete;
  Receiving& operator=(Receiving const&) = delete;

 private:
  bool& flag_;
};

}  // namespace

void StagedPushes::let_go(http::TimePoint now) {
  std::erase_if(staged_, [now](auto const& entry) { return entry.second->touched + push_patience < now; });
}

http::Checked<std::shared_ptr<StagedPushes::Staged>> StagedPushes::begin(Piece const& piece) {
  auto const now = steady_clock::now();
  let_go(now);
  Key const key(piece.parameter, piece.shard, piece.client.name);
  auto const found = staged_.find(key);
  auto const is_same = found != staged_.end() && found->second->incarnation == piece.client.incarnation &&
                       found->second->sequence == piece.sequence && found->second->block->size_bytes() == piece.total;
  if (is_same && found->second->is_receiving)
    return Problem(ProblemCode::unavailable, "another piece of this push is arriving");
  if (is_same && piece.offset <= found->second->filled) {
    found->second->touched = now;
    return found->second;
  }
  if (piece.offset > 0)
    return Problem(
        ProblemCode::out_of_order,
        "the push is here up to byte " + std::to_string(is_same ? found->second->filled : 0) + ": begin it again");
  if (staged_.size() >= staged_max && found == staged_.end())
    return Problem(ProblemCode::unavailable, std::to_string(staged_max) + " pushes are arriving in pieces");
  auto block = ArrivingBlock::announce(pool_, helper_, piece.total);
  if (!block) return to_problem(block.error());
  auto const staged = std::make_shared<Staged>();
  staged->incarnation = piece.client.incarnation;
  staged->sequence = piece.sequence;
  staged->block = std::move(*block);
  staged->touched = now;
  staged_[key] = staged;
  return staged;
}

boost::asio::awaitable<http::Checked<std::shared_ptr<tensors::Block>>> StagedPushes::add(Piece piece,
                                                                                         http::Body& body) {
  auto const length = body.length();
  if (!length) co_return Problem(ProblemCode::length_required, "a piece of a push has a Content-Length");
  if (piece.offset > piece.total || *length > piece.total - piece.offset)
    co_return Problem(ProblemCode::length_mismatch,
                      "the piece ends beyond the push, which has " + std::to_string(piece.total) + " bytes");
  auto const begun = begin(piece);
  if (!begun) co_return begun.error();
  auto const staged = *begun;
  {
    Receiving const receiving(staged->is_receiving);
    auto const read = co_await staged->block->read(body, piece.offset, *length);
    if (!read) co_return read.error();
  }
  staged->filled = std::max(staged->filled, piece.offset + *length);
  staged->touched = steady_clock::now();
  if (staged->filled < piece.total) co_return std::shared_ptr<tensors::Block>();
  auto const found = staged_.find(Key(piece.parameter, piece.shard, piece.client.name));
  if (found != staged_.end() && found->second == staged) staged_.erase(found);
  co_return staged->block->block();
}

}  // namespace chorus::service
