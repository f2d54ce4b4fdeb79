// A parameter as its users see it, wherever its shards are: asks the coordinator where they stand, talks to the owners
// in parallel, and goes on with the next owner when one is lost.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/core/dtype.hpp"
#include "http/api/parameters.hpp"
#include "http/client.hpp"
#include "http/peer_client.hpp"
#include "http/range.hpp"
#include "http/task_group.hpp"
#include "worker/parameters/shard/push.hpp"
#include "worker/parameters/shard/rows.hpp"

namespace chorus::parameters {

// Where a parameter stands, as the coordinator said. A value that is shared and never changed.
struct Placement {
  api::Parameter parameter;
  Dtype dtype = Dtype::f32;
  std::uint64_t elements = 0;
  std::uint64_t row_elements = 1;
  std::vector<api::ParameterEndpoint> owners;  // by shard; elements are in order and without a gap

  [[nodiscard]] std::uint64_t bytes() const { return elements * element_bytes(dtype); }
  [[nodiscard]] static http::Checked<std::shared_ptr<Placement const>> from(api::Parameter parameter);
};
using PlacementPtr = std::shared_ptr<Placement const>;

// Memory that is read or written until nobody holds its owner any more: a call that is cancelled leaves its requests to
// end by themselves.
struct Room {
  std::shared_ptr<void const> owner;
  std::span<std::byte> bytes;
};

// On one thread. The client outlives stop().
class Access {
 public:
  // checksums: of what goes to other workers.
  Access(boost::asio::any_io_executor executor, http::Client& client, http::MessageChecksums checksums,
         std::string coordinator);
  Access(Access const&) = delete;
  Access& operator=(Access const&) = delete;

  boost::asio::awaitable<void> stop();

  // Tells the coordinator that this worker does not answer.
  boost::asio::awaitable<void> suspect(std::string worker, std::string incarnation, http::TimePoint deadline);
  // ... or that it does not have this shard any more. False: the coordinator has not heard of it.
  boost::asio::awaitable<bool> report_loss(std::string parameter, std::uint32_t shard, std::string worker,
                                           std::string incarnation, http::TimePoint deadline);

  // As it was heard of last, or from the coordinator. Problems: unknown_parameter and what else the coordinator
  // answers; unavailable if there is none, or it does not answer.
  boost::asio::awaitable<http::Checked<PlacementPtr>> placement(std::string name, http::TimePoint deadline);

  // What became of it at every owner.
  struct Outcome {
    std::uint32_t epoch = 0;          // the highest
    std::uint64_t version = 0;        // the lowest
    std::vector<std::string> tags;    // of each shard, without quotes: "epoch.version"
    std::uint64_t next_sequence = 0;  // of a push
    bool duplicate = false;           // of a push: at every owner
    bool unchanged = false;           // of a pull: none has changed; nothing was received
  };
  // Of every owner alike.
  struct Wish {
    std::optional<std::uint64_t> min_version;
    std::optional<std::uint64_t> clock;
    std::vector<std::string> tags;  // that the caller has, of each shard: nothing is sent where all are the same
  };

  // The bytes of `range` (of the whole parameter's) into `into`, which has their number. Problems: of the owners;
  // deadline_exceeded when none could be reached until then.
  boost::asio::awaitable<http::Checked<Outcome>> pull(PlacementPtr placement, Wish wish, http::ByteRange range,
                                                      Room into, http::TimePoint deadline);

  // A push of the whole parameter, gradient or value; `answer`, if it is not empty, takes the values afterwards. The
  // same sequence may be pushed again, and takes effect once.
  boost::asio::awaitable<http::Checked<Outcome>> push(PlacementPtr placement, Push push, Room answer,
                                                      http::TimePoint deadline);

  // The same of a gradient that is compressed, shard by shard: `parts` instead of push.data.
  struct Compressed {
    std::string compression;  // its name
    std::vector<std::vector<std::byte>> parts;
  };
  boost::asio::awaitable<http::Checked<Outcome>> push_compressed(PlacementPtr placement, Push push,
                                                                 std::shared_ptr<Compressed const> gradient,
                                                                 Room answer, http::TimePoint deadline);

  // What owners have, without its bytes; with `holds` they keep it for pull_held(), for as long as pieces are asked
  // for.
  boost::asio::awaitable<http::Checked<Outcome>> look(PlacementPtr placement, Wish wish, bool holds,
                                                      http::TimePoint deadline);
  // A part of one shard.
  struct Part {
    std::uint32_t shard = 0;
    http::ByteRange range;  // within the shard
    std::string tag;        // of what is held
    bool is_last = false;   // nothing of the shard follows
  };
  // Problems: precondition_failed when it is held no more.
  boost::asio::awaitable<http::Checked<Outcome>> pull_held(PlacementPtr placement, Part part, Room into,
                                                           http::TimePoint deadline);
  // A push of one shard in pieces, of `total` bytes; the last one has it applied. Problem out_of_order: the owner does
  // not have those before it.
  boost::asio::awaitable<http::Checked<Outcome>> push_piece(PlacementPtr placement, Push push, Part part,
                                                            std::uint64_t total, Room bytes, http::TimePoint deadline);

  // Rows: push.data is as in rows.hpp, of the whole parameter, and has been checked.
  boost::asio::awaitable<http::Checked<Outcome>> push_rows(PlacementPtr placement, Push push, http::TimePoint deadline);
  // `numbers`, checked, belong to numbers_owner. `into` has room for as many rows.
  boost::asio::awaitable<http::Checked<Outcome>> pull_rows(PlacementPtr placement, Wish wish,
                                                           std::shared_ptr<void const> numbers_owner,
                                                           std::span<std::uint64_t const> numbers, Room into,
                                                           http::TimePoint deadline);

 private:
  struct Asked;
  class Ending;
  using AskedPtr = std::shared_ptr<Asked>;
  // What is asked of an owner; nothing: it is not concerned.
  using Make = std::function<std::optional<http::Call>(api::ParameterEndpoint const& owner)>;

  // Everybody, or the owner of one shard.
  boost::asio::awaitable<http::Checked<Outcome>> ask_all(PlacementPtr placement, Make make, http::TimePoint deadline,
                                                         std::optional<std::uint32_t> only = std::nullopt);
  [[nodiscard]] static std::optional<http::Problem> refuse(Placement const& placement, Push const& push);
  boost::asio::awaitable<void> ask(AskedPtr asked, std::size_t shard);
  boost::asio::awaitable<http::Checked<PlacementPtr>> fetch(std::string name, std::string query,
                                                            http::TimePoint deadline);

  boost::asio::any_io_executor executor_;
  http::Client& client_;
  http::PeerClient owners_;
  std::string coordinator_;
  std::map<std::string, PlacementPtr, std::less<>> known_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::parameters
