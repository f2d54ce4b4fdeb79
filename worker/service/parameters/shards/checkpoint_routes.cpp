#include "worker/service/parameters/shards/checkpoint_routes.hpp"

#include <charconv>

#include "http/json/json.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;

constexpr std::chrono::seconds hold_patience{60};  // for a moment between two pushes of a shard

// Messages about many shards may be larger than other requests.
template <class Message>
awaitable<http::Checked<Message>> read_long(http::Body& body) {
  auto const text = co_await body.read_all(http::json_answer_limit_bytes);
  if (!text) co_return text.error();
  co_return http::decode<Message>(*text, http::UnknownFields::ignore);
}

}  // namespace

void CheckpointRoutes::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/checkpoints/{name}", http::Access::join,
             [this](http::Request const& request, http::Body&) { return newest(request); });
  router.add(http::Method::post, "/v1/checkpoints/{name}/numbers", http::Access::join,
             [this](http::Request const& request, http::Body&) { return next_number(request); });
  router.add(http::Method::post, "/v1/checkpoints/{name}/holds", http::Access::join,
             [this](http::Request const& request, http::Body& body) { return hold(request, body); });
  router.add(http::Method::post, "/v1/checkpoints/{name}/images", http::Access::join,
             [this](http::Request const& request, http::Body& body) { return keep_images(request, body); });
  router.add(http::Method::post, "/v1/checkpoints/{name}/files", http::Access::join,
             [this](http::Request const& request, http::Body& body) { return write(request, body); });
  router.add(http::Method::delete_, "/v1/checkpoints/{name}/files/{number}", http::Access::join,
             [this](http::Request const& request, http::Body&) { return discard(request); });
  router.add(http::Method::post, "/v1/checkpoints/{name}/commit", http::Access::join,
             [this](http::Request const& request, http::Body& body) { return commit(request, body); });
}

awaitable<http::Response> CheckpointRoutes::next_number(http::Request const& request) {
  auto const number = co_await store_.next_number(request.parameter("name"));
  if (!number) co_return number.error();
  co_return http::Response::json(200, http::encode(api::CheckpointNumber{*number}));
}

awaitable<http::Response> CheckpointRoutes::newest(http::Request const& request) {
  auto const number = co_await store_.newest_number(request.parameter("name"));
  if (!number) co_return number.error();
  co_return http::Response::json(200, http::encode(api::CheckpointNumber{*number}));
}

awaitable<http::Response> CheckpointRoutes::hold(http::Request const& request, http::Body& body) {
  auto shards = co_await read_long<api::CheckpointPlaces>(body);
  if (!shards) co_return shards.error();
  auto const held = co_await store_.hold(request.parameter("name"), std::move(*shards));
  if (!held) co_return held.error();
  co_return http::Response::json(200, http::encode(*held));
}

awaitable<http::Response> CheckpointRoutes::keep_images(http::Request const& request, http::Body& body) {
  auto places = co_await read_long<api::CheckpointPlaces>(body);
  if (!places) co_return places.error();
  auto const kept = co_await store_.keep_images(request.parameter("name"), std::move(*places));
  if (!kept) co_return kept.error();
  co_return http::Response::json(200, http::encode(*kept));
}

awaitable<http::Response> CheckpointRoutes::write(http::Request const& request, http::Body& body) {
  auto file = co_await read_long<api::CheckpointFile>(body);
  if (!file) co_return file.error();
  auto const deadline = std::chrono::steady_clock::now() + hold_patience;
  auto manifest = co_await store_.write(request.parameter("name"), identity_.id, std::move(*file), deadline);
  if (!manifest) co_return manifest.error();
  api::CheckpointPart part;
  part.manifest = std::move(*manifest);
  co_return http::Response::json(200, http::encode(part));
}

awaitable<http::Response> CheckpointRoutes::discard(http::Request const& request) {
  auto const& text = request.parameter("number");
  std::uint64_t number = 0;
  auto const* const end = text.data() + text.size();
  auto const [stop, failure] = std::from_chars(text.data(), end, number);
  if (failure != std::errc() || stop != end)
    co_return http::Problem(http::ProblemCode::bad_request,
                            "a checkpoint's number is a number, not '" + text.substr(0, 80) + "'");
  if (auto const problem = co_await store_.discard(request.parameter("name"), identity_.id, number)) co_return *problem;
  co_return http::Response(204);
}

awaitable<http::Response> CheckpointRoutes::commit(http::Request const& request, http::Body& body) {
  auto asked = co_await read_long<api::CheckpointCommit>(body);
  if (!asked) co_return asked.error();
  if (auto const problem = co_await store_.commit(request.parameter("name"), std::move(*asked))) co_return *problem;
  co_return http::Response(204);
}

}  // namespace chorus::service
