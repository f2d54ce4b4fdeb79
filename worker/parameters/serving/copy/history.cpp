#include "worker/parameters/serving/copy/history.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string>

#include "worker/parameters/serving/access/push_fields.hpp"

namespace chorus::parameters {

std::uint64_t history_after(std::uint64_t before, Push const& push) {
  auto const text = std::string(name(push.kind)) + '\n' + push.client.name + '\n' +
                    std::to_string(push.client.incarnation) + '\n' + std::to_string(push.sequence) + '\n' +
                    client_lines(push.clients);
  return XXH3_64bits_withSeed(text.data(), text.size(), before);
}

void History::take(Push const& push) {
  if (now_) now_ = history_after(*now_, push);
}

bool History::may_be_followed_by(std::optional<std::uint64_t> before_it) const {
  return !now_ || !before_it || *now_ == *before_it;
}

bool History::may_have_ended_with(Push const& push, std::optional<std::uint64_t> before_it) const {
  return !now_ || !before_it || *now_ == history_after(*before_it, push);
}

}  // namespace chorus::parameters
