// The coordinator as the command line sees it: blocking requests, one connection each.
#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/core/result.hpp"
#include "http/json.hpp"
#include "server/cli/session.hpp"

namespace chorus::cli {

template <class T>
class [[nodiscard]] Reply : public boost::system::result<T, Failure> {
 public:
  using boost::system::result<T, Failure>::result;
};

// Page sizes: a worker is one line, while groups and collectives have one line per rank.
inline constexpr std::uint32_t workers_per_page = 1000;
inline constexpr std::uint32_t groups_per_page = 20;
inline constexpr std::uint32_t collectives_per_page = 20;

struct Request {
  std::string method = "GET";
  std::string path = {};  // with the query; segments made of user input are percent_encoded
  std::string body = {};
  std::string content_type = "application/json";                 // of the body
  std::vector<std::pair<std::string, std::string>> fields = {};  // further header fields
  std::chrono::milliseconds patience{10'000};                    // longest silence of the coordinator
};

// http or https, a host, and nothing else that could be mistyped. Errors: HttpErrc::bad_url.
[[nodiscard]] Status check_coordinator_url(std::string_view url);

// For one segment of a path or one value of a query.
[[nodiscard]] std::string percent_encode(std::string_view text);

class Client {
 public:
  // The session's URL has passed check_coordinator_url.
  explicit Client(Session const& session) : Client(session, session.coordinator, "the coordinator") {}
  // Another service; `url` has passed as well, `who` is what failures call it.
  Client(Session const& session, std::string url, std::string_view who)
      : coordinator_(std::move(url)), credentials_(session.credentials), who_(who) {}

  // The body of a 2xx answer. Failures: the problem of any other answer; `unavailable`, not reachable, without one.
  [[nodiscard]] Reply<std::string> send(Request const& request) const;

  // Hands over the body of a 2xx answer as it comes, until the coordinator ends it or `on_bytes` returns false: then
  // nothing. Failures as send(), also when it breaks off.
  [[nodiscard]] std::optional<Failure> follow(Request const& request,
                                              std::function<bool(std::string_view)> const& on_bytes) const;

  // The answer as a message; one that does not parse is a failure, fields of a newer release are skipped.
  template <class Message>
  [[nodiscard]] Reply<Message> ask(Request const& request) const {
    auto const answer = send(request);
    if (!answer) return answer.error();
    auto message = http::decode<Message>(*answer, http::UnknownFields::ignore);
    if (!message) return not_understood(request, message.error());
    return std::move(*message);
  }

  // Every element of a paged list, `page_size` at a time: a page has to stay below http::json_answer_limit_bytes.
  template <class List>
  [[nodiscard]] Reply<decltype(List::items)> list(std::string const& path, std::uint32_t page_size) const {
    decltype(List::items) items;
    std::optional<std::string> cursor;
    do {
      auto target = path + "?limit=" + std::to_string(page_size);
      if (cursor) target += "&cursor=" + percent_encode(*cursor);
      auto page = ask<List>({.path = target});
      if (!page) return page.error();
      for (auto& item : page->items) items.push_back(std::move(item));
      cursor = std::move(page->next_cursor);
    } while (cursor);
    return items;
  }

 private:
  [[nodiscard]] static Failure not_understood(Request const& request, http::Problem const& why);

  std::string coordinator_;
  Credentials credentials_;
  std::string who_;
};

}  // namespace chorus::cli
