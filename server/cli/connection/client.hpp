// The client of the command line: blocking requests, one connection each.
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
#include "http/json/json.hpp"
#include "server/cli/connection/repeats.hpp"
#include "server/cli/connection/session.hpp"

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
  bool follows = true;      // a redirect of a standby to the coordinator that leads
  bool repeatable = false;  // repeated if its answer is lost (Repeats): the service recognises a repetition
};

// Returns a unique value for Idempotency-Key.
[[nodiscard]] std::string draw_key();

// Checks that a URL is http or https with a host, and nothing else that may be a typing error. Errors:
// HttpErrc::bad_url.
[[nodiscard]] Status check_coordinator_url(std::string_view url);

// Splits one URL or several separated by commas.
[[nodiscard]] std::vector<std::string> split_services(std::string_view text);

// Encodes one segment of a path or one value of a query.
[[nodiscard]] std::string percent_encode(std::string_view text);

class Redirects;

class Client {
 public:
  // The session's URLs have passed check_coordinator_url. If a connection is refused, or the answer is `unavailable`,
  // the next URL is tried: a service that refuses so has begun nothing, or begins the same thing again.
  explicit Client(Session const& session) : Client(session, session.coordinator, coordinator) {}
  // A client of another service; `url` has passed the check, too; failures call the service `who`.
  Client(Session const& session, std::string url, std::string_view who)
      : services_(split_services(url)), credentials_(session.credentials), who_(who) {}

  // Returns the body of a 2xx answer. Failures: the problem of another answer; `unavailable`, not reachable, without an
  // answer; is_local if a file of the credentials cannot be used.
  [[nodiscard]] Reply<std::string> send(Request const& request) const;

  // Passes on the body of a 2xx answer as it arrives, until the coordinator ends it or `on_bytes` returns false; then
  // returns nothing. Failures as in send(), also if the connection breaks.
  [[nodiscard]] std::optional<Failure> follow(Request const& request,
                                              std::function<bool(std::string_view)> const& on_bytes) const;

  // Returns the answer as a message. An answer that does not parse is a failure; fields of a newer release are skipped.
  template <class Message>
  [[nodiscard]] Reply<Message> ask(Request const& request) const {
    auto const answer = send(request);
    if (!answer) return answer.error();
    auto message = http::decode<Message>(*answer, http::UnknownFields::ignore);
    if (!message) return not_understood(request, message.error());
    return std::move(*message);
  }

  // Returns all elements of a paged list, `page_size` at a time: a page must stay below http::json_answer_limit_bytes.
  template <class List>
  [[nodiscard]] Reply<decltype(List::items)> list(std::string const& path, std::uint32_t page_size) const {
    return list_until<List>(path, page_size, Request().patience, [](auto const&) { return false; });
  }

  // The same of the first elements only: no page is asked for after `is_enough` is true of the elements so far.
  template <class List, class IsEnough>
  [[nodiscard]] Reply<decltype(List::items)> list_until(std::string const& path, std::uint32_t page_size,
                                                        std::chrono::milliseconds patience,
                                                        IsEnough const& is_enough) const {
    decltype(List::items) items;
    std::optional<std::string> cursor;
    do {
      auto target = path + "?limit=" + std::to_string(page_size);
      if (cursor) target += "&cursor=" + percent_encode(*cursor);
      auto page = ask<List>({.path = target, .patience = patience});
      if (!page) return page.error();
      for (auto& item : page->items) items.push_back(std::move(item));
      cursor = std::move(page->next_cursor);
    } while (cursor && !is_enough(items));
    return items;
  }

 private:
  static constexpr std::string_view coordinator = "the coordinator";

  // Says so if what answered is a worker, or no service of Chorus.
  [[nodiscard]] Failure explained(Failure failure) const;
  [[nodiscard]] static Failure not_understood(Request const& request, http::Problem const& why);

  [[nodiscard]] Reply<std::string> send_once(Request const& request,
                                             Delivery& delivery) const;  // at the first that takes it
  // These two follow redirects.
  [[nodiscard]] Reply<std::string> send_to(std::string const& service, Request const& request,
                                           Delivery& delivery) const;
  [[nodiscard]] std::optional<Failure> follow_at(std::string const& service, Request const& request,
                                                 std::function<bool(std::string_view)> const& on_bytes,
                                                 bool& was_sent) const;
  [[nodiscard]] Reply<std::string> send_at(Redirects const& at, Request const& request, Delivery& delivery) const;
  [[nodiscard]] std::optional<Failure> listen_at(Redirects const& at, Request const& request,
                                                 std::function<bool(std::string_view)> const& on_bytes,
                                                 bool& was_sent) const;

  std::vector<std::string> services_;
  Credentials credentials_;
  std::string who_;
};

}  // namespace chorus::cli
