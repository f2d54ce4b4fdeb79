#include "http/client/turns.hpp"

#include <algorithm>

#include "http/wire/errc.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;

constexpr unsigned temporary_redirect = 307;
constexpr std::size_t redirects_max = 4;

}  // namespace

bool Turns::has(std::string_view url) const {
  auto const& first = urls_.front();
  return url.starts_with(first) && (url.size() == first.size() || url[first.size()] == '/');
}

// Moves on from the service at `url`, which does not answer, unless another caller has already done so.
void Turns::pass_on(std::string_view url) {
  if (url != present_) return;
  auto const here = std::ranges::find(urls_, present_);
  auto const next = here == urls_.end() || here + 1 == urls_.end() ? urls_.begin() : here + 1;
  present_ = *next;
}

// Follows a redirect of the present service to this URL. False if it is malformed.
bool Turns::go_to(std::string_view location) {
  auto const url = parse_url(location);
  if (!url) return false;
  present_ = std::string(location.substr(0, location.size() - url->path.size()));
  return true;
}

asio::awaitable<Result<Answer>> Turns::send(Call call, TimePoint deadline, SendOne one) {
  auto const rest = call.url.substr(urls_.front().size());
  std::size_t redirects = 0;
  for (std::size_t asked = 1;; ++asked) {
    auto const service = present_;
    call.url = service + rest;
    auto answer = co_await one(call, deadline);
    if (!answer) {
      pass_on(service);
      auto const code = answer.error().code;
      bool const was_sent = code != HttpErrc::connect_failed && code != HttpErrc::no_way;
      if (was_sent || asked >= urls_.size()) co_return answer;
      continue;
    }
    if (answer->status != temporary_redirect) co_return answer;
    auto const location = answer->fields.find("Location");
    if (!location || !go_to(*location) || ++redirects > redirects_max) co_return answer;
  }
}

}  // namespace chorus::http
