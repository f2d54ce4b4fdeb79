#include "worker/parameters/serving/replication/following.hpp"

#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace chorus::parameters {

namespace asio = boost::asio;
using http::Problem;
using http::ProblemCode;

asio::awaitable<std::optional<Problem>> Following::follow(LogEntry entry, std::uint32_t epoch,
                                                          http::TimePoint deadline) {
  std::optional<Problem> misfit;
  if (entry.push.kind != PushKind::clients) misfit = co_await copy_.refuse(entry.push);
  if (auto problem = tenure_.why_not_following(epoch)) co_return problem;
  if (copy_.broken()) co_return *copy_.broken();
  if (misfit) co_return misfit;
  is_unused_ = false;
  auto const job = queue_.add(std::move(entry.push), PushJob::FromOwner{entry.position, entry.history, epoch});
  co_await queue_.until_answered(job, deadline);
  if (!job->answer) co_return Problem(ProblemCode::deadline_exceeded, tenure_.title() + ": the push has not ended");
  if (!*job->answer) co_return job->answer->error();
  co_return std::nullopt;
}

// A push of a former epoch is fenced.
PushQueue::Turn Following::turn(PushJob& job) {
  auto const& [position, history, epoch] = *job.from_owner;
  auto const at = copy_.shard().position();
  auto const& here = copy_.history();
  if (auto problem = tenure_.why_not_following(epoch)) {
    queue_.answer(job, std::move(*problem));
  } else if (position == at && here.may_be_followed_by(history)) {
    return PushQueue::Turn::now;
  } else if (position < at && (position + 1 < at || here.may_have_ended_with(job.push, history))) {
    queue_.answer(job, api::PushAnswer{});
  } else {
    queue_.answer(job, fall_out_of_step(position > at ? "it has missed a push" : "it has taken other pushes"));
  }
  return PushQueue::Turn::never;
}

Problem Following::out_of_order(std::string const& why) const {
  return {ProblemCode::out_of_order,
          tenure_.title() + " is at position " + std::to_string(copy_.shard().position()) + " here" + why};
}

// Marks the backup as incomplete: it needs an image. Tells the coordinator, because the owner may wait for this backup.
Problem Following::fall_out_of_step(std::string const& why) {
  auto problem = out_of_order(": " + why);
  auto const was_complete = tenure_.is_complete();
  want_image();
  if (was_complete && tools_.events.lost) tools_.events.lost(copy_.spec().parameter, copy_.spec().index, why);
  return problem;
}

void Following::want_image() {
  tenure_.set_complete(false);
  has_image_ = false;
}

void Following::lose_content() {
  want_image();
  is_unused_ = false;
}

asio::awaitable<std::optional<Problem>> Following::put_piece(ImagePiece piece,
                                                             std::shared_ptr<tensors::Block const> content,
                                                             std::uint32_t epoch) {
  if (auto problem = tenure_.why_not_following(epoch)) co_return problem;
  if (copy_.is_busy()) co_return copy_.is_applying(ProblemCode::unavailable);
  ShardCopy::Pause const pause(copy_);
  if (piece.image != arriving_image_) {
    // A late piece of an image that was given up.
    if (piece.image <= newest_image_)
      co_return Problem(ProblemCode::out_of_order, "a later image of " + tenure_.title() + " has come here");
    // The image needs an unused shard, because state that is not in the image must be initial.
    if (!std::exchange(is_unused_, false)) {
      auto fresh = co_await copy_.offload().make_fresh(copy_.spec(), tools_.memory());
      if (auto problem = tenure_.why_not_following(epoch)) co_return problem;
      if (!fresh) co_return why_not_made(fresh.error());
      copy_.replace(std::move(*fresh));
    }
    arriving_image_ = newest_image_ = piece.image;
    want_image();
  }
  auto const is_taken = co_await copy_.offload().take(piece, content);
  if (is_taken) co_return std::nullopt;
  co_return Problem(ProblemCode::mismatch, tenure_.title() + " has no array " + piece.array.substr(0, 80) + " of " +
                                               std::to_string(piece.bytes) + " bytes");
}

asio::awaitable<std::optional<Problem>> Following::end_image(std::uint64_t image, api::ShardState state,
                                                             std::optional<std::uint64_t> history,
                                                             std::uint32_t epoch) {
  if (auto problem = tenure_.why_not_following(epoch)) co_return problem;
  if (image == 0 || image != arriving_image_ || copy_.offload().is_lent())
    co_return Problem(ProblemCode::out_of_order, "this image of " + tenure_.title() + " has not begun here");
  auto const restored = co_await copy_.offload().restore(std::move(state));
  if (!restored) co_return copy_.heed(restored.error());
  if (auto problem = tenure_.why_not_following(epoch)) co_return problem;
  arriving_image_ = 0;
  if (!*restored) co_return Problem(ProblemCode::mismatch, "the state does not fit " + tenure_.title());
  has_image_ = true;
  copy_.history().restart(history);
  copy_.mend();
  co_return std::nullopt;
}

std::optional<Problem> Following::complete(std::uint64_t position, std::optional<std::uint64_t> history,
                                           std::uint32_t epoch) {
  if (auto problem = tenure_.why_not_following(epoch)) return problem;
  if (arriving_image_ != 0 || copy_.broken() || position != copy_.shard().position() || copy_.is_busy() ||
      !(tenure_.is_complete() || has_image_) || !copy_.history().may_be_followed_by(history))
    return out_of_order("");
  tenure_.set_complete(true);
  return std::nullopt;
}

}  // namespace chorus::parameters
