#include "http/client/peer_client.hpp"

#include <boost/asio/ip/address.hpp>

#include "http/wire/errc.hpp"
#include "http/wire/message_checksum.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;

constexpr int attempts = 3;

bool leads_back(std::string const& host) {
  boost::system::error_code is_name;
  auto const address = asio::ip::make_address(host, is_name);
  return is_name ? host == "localhost" : address.is_loopback();
}

bool wants_checksum(MessageChecksums checksums, Url const& url) {
  if (checksums == MessageChecksums::automatic) return url.scheme != "https" && !leads_back(url.host);
  return checksums == MessageChecksums::on;
}

// False for an answer without a checksum, which cannot be verified.
asio::awaitable<bool> was_changed(Answer const& answer, std::span<std::byte const> destination) {
  auto const field = answer.fields.find(message_checksum_field);
  if (!field) co_return false;
  auto const said = parse_message_checksum(*field);
  bool const is_elsewhere = answer.ok() && !destination.empty();
  auto const content = is_elsewhere ? destination.first(answer.received_bytes) : std::as_bytes(std::span(answer.body));
  auto const is = co_await checksum_in_turns(std::to_string(answer.status), answer.fields, content);
  co_return !said || said->body != is.body || said->head != is.head;
}

}  // namespace

asio::awaitable<Result<Answer>> PeerClient::send(Call call, TimePoint deadline) {
  auto const url = parse_url(call.url);
  if (!url || !wants_checksum(checksums_, *url)) co_return co_await client_->send(std::move(call), deadline);
  auto const first = std::string(name(call.method)) + " " + (url->path.empty() ? "/" : url->path);
  auto const [content, rest] = content_of(call);
  auto const checksum = co_await checksum_in_turns(first, call.fields, content, rest);
  call.fields.set(std::string(message_checksum_field), to_text(checksum));
  for (int attempt = 1;; ++attempt) {
    auto const is_last = attempt == attempts;
    auto again = call;
    auto answer = co_await client_->send(std::move(again), deadline);
    if (!answer) co_return answer;
    bool const is_changed = co_await was_changed(*answer, call.destination);
    bool const was_sent_in_vain = !answer->ok() && answer->problem().code == ProblemCode::digest_mismatch;
    if (is_changed && is_last)
      co_return Error(HttpErrc::malformed, call.url + ": the answer was changed on its way: its CRC32C is another");
    if (is_last || !(is_changed || was_sent_in_vain)) co_return answer;
  }
}

}  // namespace chorus::http
