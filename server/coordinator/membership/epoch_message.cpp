#include "server/coordinator/membership/epoch_message.hpp"

#include <utility>

#include "http/json/json.hpp"

namespace chorus::coordinator {
namespace {

// The group without what members do not use, because members of the previous release refuse unknown fields: `order`,
// `segment_bytes`, `since_epoch` and `slow`, which is the last field, and empty.
std::string told(api::Group group) {
  constexpr std::string_view nobody_is_slow = R"(,"slow":[])";
  group.order.reset();
  group.segment_bytes.reset();
  group.requested.order.reset();
  group.slow.clear();
  for (auto& member : group.members) member.since_epoch.reset();
  auto text = http::encode(group);
  if (auto const at = text.rfind(nobody_is_slow); at != std::string::npos) text.erase(at, nobody_is_slow.size());
  return text;
}

}  // namespace

EpochMessage::EpochMessage(api::Group group, std::string token)
    : name_(group.name), epoch_(group.epoch), token_(std::move(token)) {
  beginning_ = R"({"group":)" + told(std::move(group));
}

// Ids, incarnations and tokens have no character that JSON would escape.
std::string EpochMessage::end_for(api::Member const& member) const {
  return R"(,"worker":")" + member.worker + R"(","incarnation":")" + member.incarnation + R"(","token":")" + token_ +
         R"("})";
}

}  // namespace chorus::coordinator
