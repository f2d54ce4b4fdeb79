#include "worker/links/handshake.hpp"

#include <algorithm>
#include <array>

#include "http/api/membership.hpp"
#include "http/ascii.hpp"
#include "worker/links/errc.hpp"

namespace chorus::links {
namespace {

constexpr std::string_view accepted = "accepted";
constexpr std::string_view declined = "declined: ";
constexpr std::size_t why_not_bytes_max = 200;

Error bad(std::string why) { return {LinkErrc::bad_handshake, std::move(why)}; }

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

}  // namespace

http::Fields to_fields(Introduction const& self) {
  http::Fields fields;
  fields.set("Chorus-Worker", self.worker);
  fields.set("Chorus-Incarnation", api::to_hex(self.incarnation));
  if (self.shared_memory) fields.set("Chorus-Shared-Memory", to_text(*self.shared_memory));
  return fields;
}

Result<Introduction> read_introduction(http::Fields const& fields) {
  auto const connection = fields.find("Connection");
  auto const upgrade = fields.find("Upgrade");
  if (!connection || !http::list_contains(*connection, "upgrade")) return bad("Connection: Upgrade is missing");
  if (!upgrade || !http::list_contains(*upgrade, link_protocol))
    return bad("Upgrade: " + std::string(link_protocol) + " is missing");
  auto const worker = fields.find("Chorus-Worker");
  if (!worker || worker->empty()) return bad("Chorus-Worker is missing");
  auto const text = fields.find("Chorus-Incarnation");
  auto const incarnation = text ? api::from_hex(*text) : std::nullopt;
  if (!incarnation) return bad("Chorus-Incarnation is missing or not 16 hexadecimal digits");
  Introduction introduction{std::string(*worker), *incarnation, {}};
  if (auto const shared = fields.find("Chorus-Shared-Memory")) {
    introduction.shared_memory = from_text(*shared);
    if (!introduction.shared_memory)
      return bad("Chorus-Shared-Memory is not five numbers of 16 hexadecimal digits with ';' between them");
  }
  return introduction;
}

Result<SharedMemoryAnswer> read_answer(http::Fields const& fields) {
  auto const answer = fields.find("Chorus-Shared-Memory");
  if (!answer) return SharedMemoryAnswer{false, "the peer does not share memory"};
  if (*answer == accepted) return SharedMemoryAnswer{true, {}};
  if (answer->starts_with(declined)) return SharedMemoryAnswer{false, printable(answer->substr(declined.size()))};
  return bad("Chorus-Shared-Memory: neither accepted nor declined");
}

http::Response switch_protocols(http::Upgrade take_over, SharedMemoryAnswer const& answer) {
  http::Response response(101);
  if (answer.accepted) response.fields.set("Chorus-Shared-Memory", std::string(accepted));
  if (!answer.why_not.empty())
    response.fields.set("Chorus-Shared-Memory", std::string(declined) + printable(answer.why_not));
  response.fields.set("Connection", "Upgrade");
  response.fields.set("Upgrade", std::string(link_protocol));
  response.upgrade = std::move(take_over);
  return response;
}

}  // namespace chorus::links
