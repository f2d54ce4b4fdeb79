#include "worker/links/frames/frame.hpp"

#include <algorithm>
#include <cstring>

#include "base/crc32c.hpp"
#include "worker/links/frames/errc.hpp"
#include "worker/links/frames/inquiry.hpp"
#include "worker/links/frames/printable.hpp"

namespace chorus::links {
namespace {

Error bad(std::string what) { return {LinkErrc::bad_frame, std::move(what)}; }

Error bad_length(FrameHeader const& header) {
  return bad(std::string(name(header.type)) + " frame with a length of " + std::to_string(header.length) + " bytes");
}

// Size of what follows the description in an open.
std::size_t appended_bytes(std::uint8_t flags) {
  if (flags == lends_flag) return sizeof(Lend);
  return flags == message_flag ? sizeof(Envelope) : 0;
}

bool length_fits(FrameHeader const& header) {
  auto const length = header.length;
  auto const appended = appended_bytes(header.flags);
  switch (header.type) {
    case FrameType::open:
      return length >= sizeof(Open) + appended && length <= open_bytes_max + appended;
    case FrameType::grant:
      return length == 0;
    case FrameType::data:
      return length > 0 && length <= data_bytes_max;
    case FrameType::abort:
    case FrameType::refuse:
      return length >= failure_notice_head_bytes && length <= failure_notice_bytes_max;
    case FrameType::ask:
      return length == sizeof(Ask);
    case FrameType::tell:
      return length >= sizeof(TellHead) && length <= tell_bytes_max;
    case FrameType::borrow:
      return length >= sizeof(BorrowHead) && length <= borrow_bytes_max;
    case FrameType::lies:
    case FrameType::room:
      return length == sizeof(Place);
    case FrameType::read:
    case FrameType::returned:
    case FrameType::wrote:
      return length == 0;
    case FrameType::message:
      return length >= sizeof(MessageHead) && length <= sizeof(MessageHead) + message_content_max;
  }
  return false;
}

}  // namespace

std::string_view name(FrameType type) {
  switch (type) {
    case FrameType::open:
      return "open";
    case FrameType::grant:
      return "grant";
    case FrameType::data:
      return "data";
    case FrameType::abort:
      return "abort";
    case FrameType::refuse:
      return "refuse";
    case FrameType::ask:
      return "ask";
    case FrameType::tell:
      return "tell";
    case FrameType::borrow:
      return "borrow";
    case FrameType::lies:
      return "lies";
    case FrameType::read:
      return "read";
    case FrameType::returned:
      return "returned";
    case FrameType::room:
      return "room";
    case FrameType::wrote:
      return "wrote";
    case FrameType::message:
      return "message";
  }
  return "unknown";
}

Status check(FrameHeader const& header) {
  if (header.magic != frame_magic) return bad("magic " + std::to_string(header.magic) + " instead of 19523");
  if (header.type < FrameType::open || header.type > FrameType::message)
    return bad("frame type " + std::to_string(static_cast<unsigned>(header.type)));
  if (header.flags != 0 &&
      !(header.type == FrameType::open && (header.flags == lends_flag || header.flags == message_flag)))
    return bad("flags " + std::to_string(header.flags) + " in a " + std::string(name(header.type)));
  if (!length_fits(header)) return bad_length(header);
  bool const names_bytes = header.type == FrameType::data || header.type == FrameType::grant ||
                           header.type == FrameType::lies || header.type == FrameType::read ||
                           header.type == FrameType::room || header.type == FrameType::wrote ||
                           header.type == FrameType::message;
  if (!names_bytes && (header.message != 0 || header.offset != 0))
    return bad(std::string(name(header.type)) + " frame that names a message or an offset");
  return ok();
}

namespace {

std::uint32_t header_check(FrameHeader const& header, std::uint32_t payload) {
  return http::crc32c(http::crc32c(0, std::as_bytes(std::span(&header, 1))), std::as_bytes(std::span(&payload, 1)));
}

}  // namespace

FrameCheck check_of(FrameHeader const& header, std::span<std::byte const> payload) {
  auto const of_payload = http::crc32c(0, payload);
  return {of_payload, header_check(header, of_payload)};
}

bool is_intact(FrameHead const& head) { return head.check.header == header_check(head.header, head.check.payload); }

std::uint32_t encode(Open const& open, std::string_view description, OpenBytes& to) {
  description = description.substr(0, description_bytes_max);
  std::memcpy(to.data(), &open, sizeof open);
  std::memcpy(to.data() + sizeof open, description.data(), description.size());
  return static_cast<std::uint32_t>(sizeof open + description.size());
}

std::uint32_t append(Lend const& lend, std::uint32_t open_bytes, OpenBytes& to) {
  std::memcpy(to.data() + open_bytes, &lend, sizeof lend);
  return static_cast<std::uint32_t>(open_bytes + sizeof lend);
}

std::uint32_t append(Envelope const& envelope, std::uint32_t open_bytes, OpenBytes& to) {
  std::memcpy(to.data() + open_bytes, &envelope, sizeof envelope);
  return static_cast<std::uint32_t>(open_bytes + sizeof envelope);
}

Result<DecodedOpen> decode_open(std::span<std::byte const> payload, std::uint8_t flags) {
  auto const appended = appended_bytes(flags);
  if (payload.size() < sizeof(Open) + appended) return bad("open frame that ends early");
  DecodedOpen decoded;
  auto const end = payload.last(appended);
  if (flags == lends_flag) std::memcpy(&decoded.lend.emplace(), end.data(), sizeof(Lend));
  if (flags == message_flag) {
    std::memcpy(&decoded.envelope.emplace(), end.data(), sizeof(Envelope));
    if (decoded.envelope->reserved != 0) return bad("envelope with a reserved field that is not 0");
  }
  payload = payload.first(payload.size() - appended);
  std::memcpy(&decoded.open, payload.data(), sizeof(Open));
  decoded.description_bytes = payload.subspan(sizeof(Open));
  return decoded;
}

std::string DecodedOpen::description() const { return printable(description_bytes); }

std::uint32_t encode(FailureNotice const& failure_notice, FailureNoticeBytes& to) {
  auto const culprits = static_cast<std::uint16_t>(std::min(failure_notice.culprits.size(), culprits_max));
  auto const text = std::string_view(failure_notice.text).substr(0, text_bytes_max);
  auto const code = static_cast<std::uint16_t>(failure_notice.code);
  std::memset(to.data(), 0, failure_notice_head_bytes);
  std::memcpy(to.data(), &failure_notice.token, 8);
  std::memcpy(to.data() + 8, &code, 2);
  std::memcpy(to.data() + 10, &culprits, 2);
  auto* end = to.data() + failure_notice_head_bytes;
  if (culprits != 0) std::memcpy(end, failure_notice.culprits.data(), culprits * sizeof(std::uint32_t));
  end += culprits * sizeof(std::uint32_t);
  std::memcpy(end, text.data(), text.size());
  return static_cast<std::uint32_t>(end + text.size() - to.data());
}

Result<FailureNotice> decode_failure_notice(std::span<std::byte const> payload) {
  if (payload.size() < failure_notice_head_bytes) return bad("failure notice that ends early");
  FailureNotice failure_notice;
  std::uint16_t code = 0, culprits = 0;
  std::memcpy(&failure_notice.token, payload.data(), 8);
  std::memcpy(&code, payload.data() + 8, 2);
  std::memcpy(&culprits, payload.data() + 10, 2);
  if (code < static_cast<std::uint16_t>(FailureNoticeCode::peer_lost) ||
      code > static_cast<std::uint16_t>(FailureNoticeCode::device_failed))
    return bad("failure notice code " + std::to_string(code));
  failure_notice.code = static_cast<FailureNoticeCode>(code);
  auto const rest = payload.subspan(failure_notice_head_bytes);
  if (culprits > culprits_max || culprits * sizeof(std::uint32_t) > rest.size())
    return bad("failure notice that names " + std::to_string(culprits) + " ranks in " + std::to_string(rest.size()) +
               " bytes");
  failure_notice.culprits.resize(culprits);
  if (culprits != 0) std::memcpy(failure_notice.culprits.data(), rest.data(), culprits * sizeof(std::uint32_t));
  failure_notice.text = printable(rest.subspan(culprits * sizeof(std::uint32_t)));
  return failure_notice;
}

}  // namespace chorus::links
