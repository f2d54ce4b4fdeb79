#include "worker/links/handshake.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>

#include "base/ascii.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/client/client.hpp"
#include "worker/links/frames/errc.hpp"

namespace chorus::links {
namespace {

constexpr std::string_view accepted = "accepted";
constexpr std::string_view declined = "declined: ";
constexpr std::string_view checksum = "Chorus-Checksum";
constexpr std::string_view crc32c = "crc32c";
constexpr std::string_view crc32c_possible = "crc32c; possible";
constexpr std::string_view device_memory = "Chorus-Device-Memory";
constexpr std::string_view ipc_on_host = "ipc; host=";
constexpr std::string_view messages = "Chorus-Messages";
constexpr std::string_view both_ways = "both-ways";
constexpr std::size_t why_not_bytes_max = 200;

Error bad_handshake(std::string why) { return {LinkErrc::bad_handshake, std::move(why)}; }

std::string printable(std::string_view text) {
  std::string result(text.substr(0, why_not_bytes_max));
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

std::string to_text(SharedMemory const& shared) {
  auto const& ticket = shared.ticket;
  auto text = api::to_hex(ticket.id);
  for (auto const number : {ticket.nonce[0], ticket.nonce[1], ticket.capacity_bytes, shared.offset})
    text += ';' + api::to_hex(number);
  return text;
}

std::optional<SharedMemory> from_text(std::string_view text) {
  std::array<std::uint64_t, 5> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    auto const end = text.find(';');
    bool const is_last = i + 1 == numbers.size();
    if (is_last != (end == std::string_view::npos)) return std::nullopt;
    auto const number = api::from_hex(text.substr(0, end));
    if (!number) return std::nullopt;
    numbers[i] = *number;
    if (!is_last) text.remove_prefix(end + 1);
  }
  return SharedMemory{{numbers[0], {numbers[1], numbers[2]}, numbers[3]}, numbers[4]};
}

void set_host(http::Fields& fields, std::uint64_t host) {
  fields.set(std::string(device_memory), std::string(ipc_on_host) + api::to_hex(host));
}

// Returns nothing for an invalid value.
std::optional<std::uint64_t> find_host(http::Fields const& fields) {
  auto const text = fields.find(device_memory);
  if (!text || !text->starts_with(ipc_on_host)) return std::nullopt;
  return api::from_hex(text->substr(ipc_on_host.size()));
}

bool is_loopback(std::string_view url) {
  auto const parsed = http::parse_url(url);
  if (!parsed) return false;
  if (parsed->host == "localhost") return true;
  boost::system::error_code error;
  auto const address = boost::asio::ip::make_address(parsed->host, error);
  return !error && address.is_loopback();
}

}  // namespace

std::optional<ChecksumMode> parse_checksum_mode(std::string_view text) {
  if (text == "auto") return ChecksumMode::automatic;
  if (text == "on") return ChecksumMode::on;
  if (text == "off") return ChecksumMode::off;
  return std::nullopt;
}

ChecksumOffer checksum_offer(ChecksumMode mode, std::string_view url) {
  if (mode == ChecksumMode::off) return ChecksumOffer::none;
  bool const is_protected = url.starts_with("https:") || is_loopback(url);
  return mode == ChecksumMode::on || !is_protected ? ChecksumOffer::wanted : ChecksumOffer::possible;
}

bool takes_checksums(ChecksumMode mode, ChecksumOffer offer) {
  if (mode == ChecksumMode::off || offer == ChecksumOffer::none) return false;
  return mode == ChecksumMode::on || offer == ChecksumOffer::wanted;
}

http::Fields to_fields(Introduction const& self) {
  http::Fields fields;
  fields.set("Chorus-Worker", self.worker);
  fields.set("Chorus-Incarnation", api::to_hex(self.incarnation));
  if (self.shared_memory) fields.set("Chorus-Shared-Memory", to_text(*self.shared_memory));
  if (self.checksums != ChecksumOffer::none)
    fields.set(std::string(checksum), std::string(self.checksums == ChecksumOffer::wanted ? crc32c : crc32c_possible));
  if (self.lending_host) set_host(fields, *self.lending_host);
  if (self.both_ways) fields.set(std::string(messages), std::string(both_ways));
  return fields;
}

Result<Introduction> read_introduction(http::Fields const& fields) {
  auto const connection = fields.find("Connection");
  auto const upgrade = fields.find("Upgrade");
  if (!connection || !http::list_contains(*connection, "upgrade"))
    return bad_handshake("Connection: Upgrade is missing");
  if (!upgrade || !http::list_contains(*upgrade, link_protocol))
    return bad_handshake("Upgrade: " + std::string(link_protocol) + " is missing");
  auto const worker = fields.find("Chorus-Worker");
  if (!worker || worker->empty()) return bad_handshake("Chorus-Worker is missing");
  auto const text = fields.find("Chorus-Incarnation");
  auto const incarnation = text ? api::from_hex(*text) : std::nullopt;
  if (!incarnation) return bad_handshake("Chorus-Incarnation is missing or not 16 hexadecimal digits");
  Introduction introduction{std::string(*worker), *incarnation, {}, ChecksumOffer::none};
  if (auto const shared = fields.find("Chorus-Shared-Memory")) {
    introduction.shared_memory = from_text(*shared);
    if (!introduction.shared_memory)
      return bad_handshake("Chorus-Shared-Memory is not five numbers of 16 hexadecimal digits with ';' between them");
  }
  // An unknown algorithm counts as no offer.
  if (auto const offer = fields.find(checksum); offer == crc32c)
    introduction.checksums = ChecksumOffer::wanted;
  else if (offer == crc32c_possible)
    introduction.checksums = ChecksumOffer::possible;
  introduction.lending_host = find_host(fields);
  introduction.both_ways = fields.find(messages) == both_ways;
  return introduction;
}

Result<SharedMemoryAnswer> read_answer(http::Fields const& fields) {
  auto const answer = fields.find("Chorus-Shared-Memory");
  if (!answer) return SharedMemoryAnswer{false, "the peer does not share memory"};
  if (*answer == accepted) return SharedMemoryAnswer{true, {}};
  if (answer->starts_with(declined)) return SharedMemoryAnswer{false, printable(answer->substr(declined.size()))};
  return bad_handshake("Chorus-Shared-Memory: neither accepted nor declined");
}

Result<bool> read_checksums_answer(http::Fields const& fields) {
  auto const answer = fields.find(checksum);
  if (!answer) return false;
  if (*answer == crc32c) return true;
  return bad_handshake("Chorus-Checksum: something else than crc32c");
}

std::optional<std::uint64_t> read_borrows_answer(http::Fields const& fields) { return find_host(fields); }

bool read_both_ways_answer(http::Fields const& fields) { return fields.find(messages) == both_ways; }

http::Response switch_protocols(http::Upgrade take_over, Answer const& answer) {
  http::Response response(101);
  auto const& shared = answer.shared_memory;
  if (shared.accepted) response.fields.set("Chorus-Shared-Memory", std::string(accepted));
  if (!shared.why_not.empty())
    response.fields.set("Chorus-Shared-Memory", std::string(declined) + printable(shared.why_not));
  if (answer.has_checksums) response.fields.set(std::string(checksum), std::string(crc32c));
  if (answer.borrowing_host) set_host(response.fields, *answer.borrowing_host);
  if (answer.both_ways) response.fields.set(std::string(messages), std::string(both_ways));
  response.fields.set("Connection", "Upgrade");
  response.fields.set("Upgrade", std::string(link_protocol));
  response.upgrade = std::move(take_over);
  return response;
}

}  // namespace chorus::links
