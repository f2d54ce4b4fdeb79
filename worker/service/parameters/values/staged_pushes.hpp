// Assembles pushes that arrive in pieces, so that a worker that passes one on needs memory for one piece only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "http/message/message.hpp"
#include "worker/parameters/shard/pushes/push.hpp"
#include "worker/service/memory/prepared_memory.hpp"

namespace chorus::service {

// Used on the control thread only; pool and helper outlive the object. A client has one push per shard in progress: a
// new sequence replaces an incomplete one.
class StagedPushes {
 public:
  StagedPushes(tensors::Pool& pool, Helper& helper) : pool_(pool), helper_(helper) {}

  struct Piece {
    std::string parameter;
    std::uint32_t shard = 0;
    parameters::Client client;
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0, total = 0;  // bytes
  };
  // Reads the body, which is the piece. Returns the whole push with its last piece, and null before. Accepts repeated
  // pieces. Problems: out_of_order for a gap, length_mismatch, length_required, unavailable for lack of memory or while
  // another piece of the push arrives, and those of the body.
  boost::asio::awaitable<http::Checked<std::shared_ptr<tensors::Block>>> add(Piece piece, http::Body& body);
  // Gives back the memory of pushes that have not gone on for too long.
  void let_go(http::TimePoint now);

 private:
  using Key = std::tuple<std::string, std::uint32_t, std::string>;  // parameter, shard, client
  struct Staged {
    std::uint64_t incarnation = 0, sequence = 0;
    std::uint64_t filled = 0;  // bytes, from the start
    std::shared_ptr<ArrivingBlock> block;
    http::TimePoint touched;
    bool is_receiving = false;
  };
  http::Checked<std::shared_ptr<Staged>> begin(Piece const& piece);

  tensors::Pool& pool_;
  Helper& helper_;
  std::map<Key, std::shared_ptr<Staged>> staged_;
};

}  // namespace chorus::service
