#include "worker/links/frames/inquiry.hpp"

#include <cstring>
#include <string_view>

#include "worker/links/frames/errc.hpp"
#include "worker/links/frames/printable.hpp"

namespace chorus::links {

std::uint32_t encode(Ask const& ask, std::span<std::byte> to) {
  std::memcpy(to.data(), &ask, sizeof ask);
  return sizeof ask;
}

std::uint32_t encode(Tell const& tell, std::span<std::byte> to) {
  auto const text = std::string_view(tell.text).substr(0, tell_text_max);
  std::memcpy(to.data(), &tell.head, sizeof tell.head);
  std::memcpy(to.data() + sizeof tell.head, text.data(), text.size());
  return static_cast<std::uint32_t>(sizeof tell.head + text.size());
}

Result<Ask> decode_ask(std::span<std::byte const> payload) {
  if (payload.size() != sizeof(Ask)) return Error(LinkErrc::bad_frame, "ask frame of a wrong length");
  Ask ask;
  std::memcpy(&ask, payload.data(), sizeof ask);
  return ask;
}

Result<Tell> decode_tell(std::span<std::byte const> payload) {
  if (payload.size() < sizeof(TellHead)) return Error(LinkErrc::bad_frame, "tell frame that ends early");
  Tell tell;
  std::memcpy(&tell.head, payload.data(), sizeof tell.head);
  bool const known = tell.head.doing >= Doing::not_called && tell.head.doing <= Doing::ended &&
                     tell.head.suspicion <= Suspicion::silent && tell.head.zero == 0;
  if (!known) return Error(LinkErrc::bad_frame, "tell frame that says what cannot be");
  tell.text = printable(payload.subspan(sizeof tell.head));
  return tell;
}

}  // namespace chorus::links
