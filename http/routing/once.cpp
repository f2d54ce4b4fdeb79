#include "http/routing/once.hpp"

#include <algorithm>

#include "http/json/json.hpp"
#include "http/message/reception.hpp"

namespace chorus::http {
namespace {

using boost::asio::awaitable;

// A body that has been read to its end, passed to a handler.
class ReadBody final : public Body {
 public:
  explicit ReadBody(std::string const& text) : left_(std::as_bytes(std::span(text))) {}

  [[nodiscard]] std::optional<std::uint64_t> length() const override { return left_.size(); }
  awaitable<Checked<std::size_t>> read_exactly(std::span<std::byte> destination) override {
    if (left_.size() < destination.size())
      co_return Problem(ProblemCode::bad_request, "the body has " + std::to_string(left_.size()) +
                                                      " bytes left, expected " + std::to_string(destination.size()));
    std::ranges::copy(left_.first(destination.size()), destination.begin());
    left_ = left_.subspan(destination.size());
    co_return destination.size();
  }
  awaitable<std::optional<Problem>> expect_end() override {
    if (left_.empty()) co_return std::nullopt;
    co_return Problem(ProblemCode::length_mismatch, "the body goes on for " + std::to_string(left_.size()) + " bytes");
  }
  awaitable<Checked<std::string>> read_all(std::size_t limit_bytes) override {
    if (left_.size() > limit_bytes)
      co_return Problem(ProblemCode::payload_too_large,
                        "the body has more than " + std::to_string(limit_bytes) + " bytes");
    auto const all = std::exchange(left_, {});
    co_return std::string(reinterpret_cast<char const*>(all.data()), all.size());
  }

 private:
  std::span<std::byte const> left_;
};

}  // namespace

Handler Once::wrap(Handler handler) {
  return [this, handler = std::move(handler)](Request const& request, Body& body) {
    return handle(handler, request, body);
  };
}

awaitable<Response> Once::handle(Handler const& handler, Request const& request, Body& body) {
  auto const key = idempotency_key(request.fields);
  if (!key) co_return key.error();
  if (!*key) co_return co_await handler(request, body);
  auto text = co_await body.read_all(json_limit_bytes);
  if (!text) co_return text.error();
  auto const what = std::string(name(request.method)) + " " + request.target;
  auto const key_here = what + "\n" + **key;
  if (auto const known = answers_.find(key_here)) {
    if (known->asked() != *text) co_return idempotency_reused(what);
    only_wait(body);  // the first one runs on without its client
    auto answer = co_await known->answer();
    if (answer) co_return std::move(*answer);
    co_return Problem(ProblemCode::unavailable, "the request was given up: the service is stopping");
  }
  decltype(answers_)::Answering answering(answers_, key_here, *text);
  ReadBody again(*text);
  auto response = co_await handler(request, again);
  auto const bytes = response.body.size() + text->size() + key_here.size();
  answering.end(response, response.problem ? std::nullopt : std::optional(bytes));
  co_return response;
}

}  // namespace chorus::http
