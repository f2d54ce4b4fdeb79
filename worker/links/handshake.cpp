#include "worker/links/handshake.hpp"

#include "http/api/membership.hpp"
#include "http/ascii.hpp"
#include "worker/links/errc.hpp"

namespace chorus::links {
namespace {

Error bad(std::string why) { return {LinkErrc::bad_handshake, std::move(why)}; }

}  // namespace

http::Fields to_fields(Introduction const& self) {
  http::Fields fields;
  fields.set("Chorus-Worker", self.worker);
  fields.set("Chorus-Incarnation", api::to_hex(self.incarnation));
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
  return Introduction{std::string(*worker), *incarnation};
}

http::Response switch_protocols(http::Upgrade take_over) {
  http::Response response(101);
  response.fields.set("Connection", "Upgrade");
  response.fields.set("Upgrade", std::string(link_protocol));
  response.upgrade = std::move(take_over);
  return response;
}

}  // namespace chorus::links
