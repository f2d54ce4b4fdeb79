#include "http/peer_client.hpp"

#include <boost/asio/ip/address.hpp>

#include "http/errc.hpp"
#include "http/message_checksum.hpp"

namespace chorus::http {
namespace {

namespace asio = boost::asio;

constexpr int attempts = 3;

bool is_loopback(std::string const& host) {
  boost::system::error_code is_name;
  auto const address = asio::ip::make_address(host, is_name);
  return is_name ? host == "localhost" : address.is_loopback();
}

bool wants_checksum(MessageChecksums checksums, Url const& url) {
  if (checksums == MessageChecksums::automatic) return url.scheme != "https" && !is_loopback(url.host);
  return checksums == MessageChecksums::on;
}

std::span<std::byte const> content_of(Call const& call) {
  return call.payload.empty() ? std::as_bytes(std::span(call.body)) : call.payload;
}

// Nothing can be said of one that says nothing of itself.
bool was_changed(Answer const& answer, std::span<std::byte const> destination) {
  auto const field = answer.fields.find(message_checksum_field);
  if (!field) return false;
  auto const said = parse_message_checksum(*field);
  bool const is_elsewhere = answer.ok() && !destination.empty();
  auto const content = is_elsewhere ? destination.first(answer.received_bytes) : std::as_bytes(std::span(answer.body));
  auto const is = checksum_of(std::to_string(answer.status), answer.fields, content);
  return !said || said->body != is.body || said->head != is.head;
}

}  // namespace

asio::awaitable<Result<Answer>> PeerClient::send(Call call, TimePoint deadline) {
  auto const url = parse_url(call.url);
  if (!url || !wants_checksum(checksums_, *url)) co_return co_await client_->send(std::move(call), deadline);
  auto const first = std::string(name(call.method)) + " " + (url->path.empty() ? "/" : url->path);
  call.fields.set(std::string(message_checksum_field), to_text(checksum_of(first, call.fields, content_of(call))));
  for (int attempt = 1;; ++attempt) {
    auto const is_last = attempt == attempts;
    auto again = call;
    auto answer = co_await client_->send(std::move(again), deadline);
    if (!answer) co_return answer;
    bool const is_changed = was_changed(*answer, call.destination);
    bool const was_sent_in_vain = !answer->ok() && answer->problem().code == ProblemCode::digest_mismatch;
    if (is_changed && is_last)
      co_return Error(HttpErrc::malformed, call.url + ": the answer was changed on its way: its CRC32C is another");
    if (is_last || !(is_changed || was_sent_in_vain)) co_return answer;
  }
}

}  // namespace chorus::http
