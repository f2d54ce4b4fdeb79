#include "worker/links/frames/errc.hpp"

#include <string>

namespace chorus::links {
namespace {

class LinkCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "link"; }
  std::string message(int value) const override {
    switch (static_cast<LinkErrc>(value)) {
      case LinkErrc::closed:
        return "the link was closed";
      case LinkErrc::bad_frame:
        return "a frame that cannot be";
      case LinkErrc::corrupt_frame:
        return "a frame that was changed on the way";
      case LinkErrc::broken:
        return "the link broke";
      case LinkErrc::bad_handshake:
        return "a link handshake that cannot be";
    }
    return "unknown link error";
  }
};

}  // namespace

std::error_category const& link_category() {
  static LinkCategory const category;
  return category;
}

}  // namespace chorus::links
