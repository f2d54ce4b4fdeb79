// Values that clients read in pieces: they stay unchanged until the last piece, whatever is pushed meanwhile.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>

#include "http/message/message.hpp"
#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::service {

// Used on the control thread only. Views whose time is over are released by every call, and by let_go() alone.
class HeldViews {
 public:
  struct Key {
    std::string parameter;
    std::uint32_t shard = 0;
    std::string tag;  // without quotes
    friend auto operator<=>(Key const&, Key const&) = default;
  };
  // Idempotent for the same reader, as is release(), because requests may be repeated.
  void hold(Key key, std::string reader, parameters::ShardHost::View view, http::TimePoint now);
  // Empty: never held, or the time is over.
  [[nodiscard]] std::optional<parameters::ShardHost::View> find(Key const& key, http::TimePoint now);
  void release(Key const& key, std::string const& reader);
  void let_go(http::TimePoint now);

 private:
  struct Held {
    parameters::ShardHost::View view;
    std::set<std::string, std::less<>> readers;
    http::TimePoint until;
  };
  std::map<Key, Held> held_;
};

}  // namespace chorus::service
