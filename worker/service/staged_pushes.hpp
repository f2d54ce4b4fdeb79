// Pushes that arrive in pieces, until they are whole: a worker that passes one on needs memory for a piece of it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "http/message.hpp"
#include "worker/parameters/shard/push.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// On the control thread; the pool outlives it. A client has one push of a shard under way: another sequence takes the
// place of one that never became whole.
class StagedPushes {
 public:
  explicit StagedPushes(tensors::Pool& pool) : pool_(pool) {}

  struct Piece {
    std::string parameter;
    std::uint32_t shard = 0;
    parameters::Client client;
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0, total = 0;  // bytes
  };
  // Reads the body, which is the piece. Gives the whole push with its last piece, and nothing before. A piece that is
  // sent again is taken again. Problems: out_of_order for a gap, length_mismatch, length_required, unavailable without
  // memory or while another piece of it arrives, and those of the body.
  boost::asio::awaitable<http::Checked<std::shared_ptr<tensors::Block>>> add(Piece piece, http::Body& body);

 private:
  using Key = std::tuple<std::string, std::uint32_t, std::string>;  // parameter, shard, client
  struct Staged {
    std::uint64_t incarnation = 0, sequence = 0;
    std::uint64_t filled = 0;  // bytes, from the first
    std::shared_ptr<tensors::Block> block;
    http::TimePoint touched;
    bool is_receiving = false;
  };
  http::Checked<std::shared_ptr<Staged>> begin(Piece const& piece);

  tensors::Pool& pool_;
  std::map<Key, std::shared_ptr<Staged>> staged_;
};

}  // namespace chorus::service
