#include "worker/service/requests/octets.hpp"

#include "base/ascii.hpp"

namespace chorus::service {

using http::Problem;
using http::ProblemCode;

std::optional<Problem> check_octets(http::Fields const& fields) {
  constexpr std::size_t shown_bytes = 80;
  if (auto const encoding = fields.find("Content-Encoding");
      encoding && !http::equals_ignoring_case(*encoding, "identity"))
    return Problem(
        ProblemCode::unsupported_media_type,
        "Content-Encoding is " + std::string(encoding->substr(0, shown_bytes)) + ": send the bytes as they are");
  auto const type = fields.find("Content-Type");
  if (!type) return std::nullopt;
  auto const media = http::trimmed(type->substr(0, type->find(';')));
  if (http::equals_ignoring_case(media, "application/octet-stream") ||
      http::equals_ignoring_case(media, "application/x-www-form-urlencoded"))
    return std::nullopt;
  return Problem(ProblemCode::unsupported_media_type, "Content-Type is " + std::string(type->substr(0, shown_bytes)) +
                                                          ", expected application/octet-stream or none");
}

}  // namespace chorus::service
