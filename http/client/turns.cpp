#include "http/client/turns.hpp"

#include <algorithm>
#include <optional>

#include "http/wire/errc.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;

constexpr unsigned temporary_redirect = 307;
constexpr std::size_t redirects_max = 4;

// The service that a redirect names; empty if there is none, or if the URL is malformed.
std::optional<std::string> target_of(Answer const& answer) {
  auto const location = answer.fields.find("Location");
  auto const url = location ? parse_url(*location) : Result<Url>(Url());
  if (!location || !url) return std::nullopt;
  return std::string(location->substr(0, location->size() - url->path.size()));
}

bool is_secure(std::string_view service) {
  auto const url = parse_url(service);
  return url && url->scheme == "https";
}

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

asio::awaitable<Result<Answer>> Turns::send(Call call, TimePoint deadline, SendOne one) {
  auto const rest = call.url.substr(urls_.front().size());
  std::vector<std::string> redirecting;
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
    redirecting.push_back(service);
    auto const target = target_of(*answer);
    if (target && is_secure(service) && !is_secure(*target)) {
      pass_on(service);
      co_return Error(HttpErrc::tls_failed, service + " redirects to " + *target + ", which is not encrypted");
    }
    bool const is_circle = target && std::ranges::find(redirecting, *target) != redirecting.end();
    if (target && !is_circle && redirecting.size() <= redirects_max) {
      present_ = *target;
      continue;
    }
    pass_on(service);
    if (asked >= urls_.size()) co_return answer;
  }
}

}  // namespace chorus::http
