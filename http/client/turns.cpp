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

bool is_unavailable(Answer const& answer) {
  return answer.status >= 502 && answer.status <= 504 && answer.problem().code == ProblemCode::unavailable;
}

// The service leads no cluster at present, or could not begin what it was asked for. With another status a proxy has
// lost the service, which may have begun it.
bool has_begun_nothing(Answer const& answer) { return answer.status == temporary_redirect || answer.status == 503; }

bool was_sent(Error const& failure) {
  return failure.code != HttpErrc::connect_failed && failure.code != HttpErrc::no_way;
}

bool contains(std::vector<std::string> const& services, std::string_view service) {
  return std::ranges::find(services, service) != services.end();
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

// Moves on from the service at `url`, to which `listed` has redirected unless it is in the list itself, if no other
// caller has already done so.
void Turns::pass_on(std::string_view url, std::string_view listed) {
  if (url != present_) return;
  auto const here = std::ranges::find(urls_, listed);
  auto const next = here == urls_.end() || here + 1 == urls_.end() ? urls_.begin() : here + 1;
  present_ = *next;
}

asio::awaitable<Result<Answer>> Turns::send(Call call, TimePoint deadline, SendOne one) {
  auto const rest = call.url.substr(urls_.front().size());
  std::vector<std::string> asked;
  std::string listed;
  std::optional<Answer> refusal;
  for (;;) {
    auto const service = present_;
    asked.push_back(service);
    if (contains(urls_, service)) listed = service;
    call.url = service + rest;
    auto answer = co_await one(call, deadline);
    if (answer && answer->status == temporary_redirect) {
      auto const target = target_of(*answer);
      if (target && is_secure(service) && !is_secure(*target)) {
        pass_on(service, listed);
        co_return Error(HttpErrc::tls_failed, service + " redirects to " + *target + ", which is not encrypted");
      }
      if (target && !contains(asked, *target) && asked.size() < urls_.size() + redirects_max) {
        present_ = *target;
        continue;
      }
    } else if (answer && !is_unavailable(*answer)) {
      co_return answer;
    }
    pass_on(service, listed);
    if (answer ? !has_begun_nothing(*answer) : was_sent(answer.error())) co_return answer;
    if (answer && answer->status != temporary_redirect && !refusal) refusal = *answer;
    if (!contains(asked, present_)) continue;
    if (refusal) co_return std::move(*refusal);
    co_return answer;
  }
}

}  // namespace chorus::http
