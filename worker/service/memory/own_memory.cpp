#include "worker/service/memory/own_memory.hpp"

#include <spdlog/logger.h>

#include <utility>

namespace chorus::service {

using boost::asio::awaitable;

std::optional<std::string> OwnMemory::damage() {
  if (arena_ == nullptr || arena_->mapping().is_whole()) return std::nullopt;
  std::string why = "the memory that this worker shares with others was truncated; its tensors are lost";
  if (!std::exchange(is_said_, true)) log_.error("{}, and it has to be started again", why);
  return why;
}

http::Handler OwnMemory::guarded(http::Handler handler) {
  if (arena_ == nullptr) return handler;
  return [this, handler = std::move(handler)](http::Request const& request, http::Body& body) {
    return answer(handler, request, body);
  };
}

awaitable<http::Response> OwnMemory::answer(http::Handler const& handler, http::Request const& request,
                                            http::Body& body) {
  if (request.method == http::Method::delete_) co_return co_await handler(request, body);
  if (auto why = damage()) co_return http::Problem(http::ProblemCode::memory_damaged, std::move(*why));
  auto response = co_await handler(request, body);
  // Any failure may be a consequence of the damage.
  if (is_known_damaged() || response.status >= 400)
    if (auto why = damage()) co_return http::Problem(http::ProblemCode::memory_damaged, std::move(*why));
  if (response.again)
    response.again = [this, again = std::move(response.again)]() -> std::optional<http::SharedBytes> {
      return is_known_damaged() ? std::nullopt : again();
    };
  co_return response;
}

}  // namespace chorus::service
