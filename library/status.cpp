#include <algorithm>
#include <array>
#include <new>
#include <string_view>

#include "library/border.hpp"

char const* chorus_version(void) { return CHORUS_LIBRARY_VERSION; }

int chorus_has_feature(char const* name) {
  // "cuda" is known and not there: calls take memory of the process.
  constexpr std::array<std::string_view, 2> features{"shared_memory", "tls"};
  return name != nullptr && std::find(features.begin(), features.end(), name) != features.end() ? 1 : 0;
}

char const* chorus_status_name(chorus_status_t status) {
  constexpr std::array names{
      "ok",           "bad_argument",   "no_coordinator",    "fenced",        "not_assigned",  "no_new_epoch",
      "stopped",      "peer_lost",      "deadline_exceeded", "aborted",       "plan_mismatch", "forbidden",
      "epoch_fenced", "protocol_error", "corrupt_frame",     "device_failed", "out_of_memory", "not_shared",
      "bind_failed",  "bad_security",   "pending",           "internal",      "cancelled",     "not_cancellable"};
  static_assert(names.size() == CHORUS_NOT_CANCELLABLE + 1);
  return status >= 0 && static_cast<std::size_t>(status) < names.size() ? names[static_cast<std::size_t>(status)]
                                                                        : "unknown";
}

chorus_error_t* chorus_error_create(void) { return new (std::nothrow) chorus_error(); }

void chorus_error_free(chorus_error_t* error) { delete error; }

chorus_status_t chorus_error_status(chorus_error_t const* error) {
  return error != nullptr ? error->status : chorus_status_t{CHORUS_OK};
}

char const* chorus_error_text(chorus_error_t const* error) { return error != nullptr ? error->text.c_str() : ""; }

size_t chorus_error_ranks(chorus_error_t const* error, uint32_t const** ranks) {
  if (ranks != nullptr) *ranks = error != nullptr ? error->ranks.data() : nullptr;
  return error != nullptr ? error->ranks.size() : 0;
}
