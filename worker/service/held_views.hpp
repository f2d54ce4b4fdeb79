// Values that somebody reads in pieces: they stay as they were until the last piece, whatever is pushed meanwhile.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "http/message.hpp"
#include "worker/parameters/serving/shard_host.hpp"

namespace chorus::service {

// On the control thread. What nobody asks for any more is let go of with the next call.
class HeldViews {
 public:
  struct Key {
    std::string parameter;
    std::uint32_t shard = 0;
    std::string tag;  // without quotes
    friend auto operator<=>(Key const&, Key const&) = default;
  };
  void hold(Key key, parameters::ShardHost::View view, http::TimePoint now);
  // Nothing: it was never held, or for too long.
  [[nodiscard]] std::optional<parameters::ShardHost::View> find(Key const& key, http::TimePoint now);
  void release(Key const& key);

 private:
  struct Held {
    parameters::ShardHost::View view;
    std::size_t readers = 0;
    http::TimePoint until;
  };
  void let_go(http::TimePoint now);
  std::map<Key, Held> held_;
};

}  // namespace chorus::service
