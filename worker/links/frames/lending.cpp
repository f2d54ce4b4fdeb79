#include "worker/links/frames/lending.hpp"

#include <algorithm>
#include <cstring>

#include "worker/links/frames/errc.hpp"
#include "worker/links/frames/printable.hpp"

namespace chorus::links {

std::string uuid_of(Lend const& lend) {
  auto const end = std::find(lend.uuid.begin(), lend.uuid.end(), '\0');
  return printable(std::as_bytes(std::span(lend.uuid.begin(), end)));
}

void set_uuid(Lend& lend, std::string_view uuid) {
  lend.uuid = {};
  std::copy_n(uuid.begin(), std::min(uuid.size(), lend.uuid.size()), lend.uuid.begin());
}

std::uint32_t encode(Borrow const& borrow, std::span<std::byte> to) {
  auto const text = std::string_view(borrow.why_not).substr(0, borrow_text_max);
  std::memcpy(to.data(), &borrow.head, sizeof borrow.head);
  std::memcpy(to.data() + sizeof borrow.head, text.data(), text.size());
  return static_cast<std::uint32_t>(sizeof borrow.head + text.size());
}

Result<Borrow> decode_borrow(std::span<std::byte const> payload) {
  if (payload.size() < sizeof(BorrowHead)) return Error(LinkErrc::bad_frame, "borrow frame that ends early");
  Borrow borrow;
  std::memcpy(&borrow.head, payload.data(), sizeof borrow.head);
  if (borrow.head.way < Way::in_place || borrow.head.way > Way::written || borrow.head.zero != 0)
    return Error(LinkErrc::bad_frame, "borrow frame that says what cannot be");
  borrow.why_not = printable(payload.subspan(sizeof borrow.head));
  return borrow;
}

Result<Place> decode_place(std::span<std::byte const> payload) {
  if (payload.size() != sizeof(Place)) return Error(LinkErrc::bad_frame, "place of a wrong length");
  Place place;
  std::memcpy(&place, payload.data(), sizeof place);
  return place;
}

}  // namespace chorus::links
