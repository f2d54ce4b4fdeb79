// A client of parameters: asks the coordinator where a parameter's shards are, calls their owners in parallel, and goes
// on with the next owner when one is lost.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/runtime/task_group.hpp"
#include "http/client/client.hpp"
#include "http/client/peer_client.hpp"
#include "http/message/range.hpp"
#include "worker/parameters/serving/access/placement_directory.hpp"
#include "worker/parameters/shard/pushes/push.hpp"
#include "worker/parameters/shard/pushes/rows.hpp"

namespace chorus::parameters {

// Memory that requests read or write, with its owner: requests of a cancelled call end later, and keep the owner alive
// until then.
struct Room {
  std::shared_ptr<void const> owner;
  std::span<std::byte> bytes;
};

// Used on one thread. The client outlives stop().
class Access {
 public:
  // checksums: for messages to other workers. is_patient: while the coordinator waits for an owner, ask again until the
  // deadline.
  Access(boost::asio::any_io_executor executor, http::Client& client, http::MessageChecksums checksums,
         std::string coordinator, bool is_patient = false);
  Access(Access const&) = delete;
  Access& operator=(Access const&) = delete;

  boost::asio::awaitable<void> stop();

  [[nodiscard]] PlacementDirectory& directory() { return directory_; }
  // See PlacementDirectory::placement.
  boost::asio::awaitable<http::Checked<PlacementPtr>> placement(std::string name, http::TimePoint deadline) {
    return directory_.placement(std::move(name), deadline);
  }

  // The answers of all owners together.
  struct Outcome {
    std::uint32_t epoch = 0;          // the highest
    std::uint64_t version = 0;        // the lowest
    std::vector<std::string> tags;    // of each shard, without quotes: "epoch.version"; of one shard, its tag alone
    std::uint64_t next_sequence = 0;  // push: the next sequence number
    bool duplicate = false;           // push: a duplicate at every owner
    bool unchanged = false;           // pull: no shard has changed; no bytes were received
    bool is_unconfirmed = false;      // pull: an owner may not own its shard any more; see ShardHost
  };
  // Joins answers to a push, each of one shard and with its tag alone, in the order of the shards.
  [[nodiscard]] static Outcome joined(std::vector<Outcome> const& of_shards);
  // Constraints for every owner.
  struct ReadConstraints {
    std::optional<std::uint64_t> min_version;
    std::optional<std::uint64_t> clock;
    std::vector<std::string> tags;  // the caller's tags of each shard: no bytes are sent if all are still the same
    // min_version, for a URL that goes on
    [[nodiscard]] std::string query() const {
      return min_version ? "min_version=" + std::to_string(*min_version) + "&" : "";
    }
  };

  // Pulls the bytes of `range`, of the whole parameter, into `into`, which has the same size. Problems: those of the
  // owners; deadline_exceeded if an owner could not be reached in time; unavailable, unless patient, if the coordinator
  // waits for an owner that does not answer here either; the text says for which worker.
  boost::asio::awaitable<http::Checked<Outcome>> pull(PlacementPtr placement, ReadConstraints constraints,
                                                      http::ByteRange range, Room into, http::TimePoint deadline);

  // Pushes a gradient or value of the whole parameter. `answer`, if not empty, receives the values after the push. The
  // same sequence number may be pushed again and takes effect once.
  boost::asio::awaitable<http::Checked<Outcome>> push(PlacementPtr placement, Push push, Room answer,
                                                      http::TimePoint deadline);

  // Pushes a gradient that is compressed shard by shard: `parts` replaces push.data.
  struct Compressed {
    std::string compression;  // its name
    std::vector<std::vector<std::byte>> parts;
  };
  boost::asio::awaitable<http::Checked<Outcome>> push_compressed(PlacementPtr placement, Push push,
                                                                 std::shared_ptr<Compressed const> gradient,
                                                                 Room answer, http::TimePoint deadline);

  // Asks the owners for their versions, without bytes. If `reader`, a unique name of letters, digits and dashes, is not
  // empty, they hold these versions for pull_held(), as long as pieces are requested, or until release_held().
  boost::asio::awaitable<http::Checked<Outcome>> look(PlacementPtr placement, ReadConstraints constraints,
                                                      std::string reader, http::TimePoint deadline);
  // A part of one shard.
  struct Part {
    std::uint32_t shard = 0;
    http::ByteRange range;  // within the shard
    std::string tag;        // of the held version
    bool is_last = false;   // the last part of the shard
  };
  // Pulls a part of a held version. Problems: precondition_failed if the version is no longer held.
  boost::asio::awaitable<http::Checked<Outcome>> pull_held(PlacementPtr placement, Part part, Room into,
                                                           http::TimePoint deadline);
  // Tells the owner that the reader has the whole shard.
  boost::asio::awaitable<http::Checked<Outcome>> release_held(PlacementPtr placement, Part part, std::string reader,
                                                              http::TimePoint deadline);
  // Pushes a piece of a push of one shard with `total` bytes; the last piece applies the push. Problem out_of_order:
  // the owner does not have the pieces before this one.
  boost::asio::awaitable<http::Checked<Outcome>> push_piece(PlacementPtr placement, Push push, Part part,
                                                            std::uint64_t total, Room bytes, http::TimePoint deadline);

  // Pushes rows. push.data, in the encoding of rows.hpp for the whole parameter, has been checked. Problem, also of
  // pull_rows(): that of Placement::refuse_rows.
  boost::asio::awaitable<http::Checked<Outcome>> push_rows(PlacementPtr placement, Push push, http::TimePoint deadline);
  // Pushes the rows of one shard: push.data has its rows alone, which have been checked.
  boost::asio::awaitable<http::Checked<Outcome>> push_rows_of(PlacementPtr placement, std::uint32_t shard, Push push,
                                                              http::TimePoint deadline);
  // Pulls rows. `numbers` have been checked and belong to numbers_owner. `into` has room for as many rows.
  boost::asio::awaitable<http::Checked<Outcome>> pull_rows(PlacementPtr placement, ReadConstraints constraints,
                                                           std::shared_ptr<void const> numbers_owner,
                                                           std::span<std::uint64_t const> numbers, Room into,
                                                           http::TimePoint deadline);

 private:
  struct Asked;
  class Ending;
  using AskedPtr = std::shared_ptr<Asked>;
  // Makes the request to an owner; nothing if the owner needs no request.
  using Make = std::function<std::optional<http::Call>(api::ParameterEndpoint const& owner)>;

  // Asks all owners, or the owner of one shard.
  boost::asio::awaitable<http::Checked<Outcome>> ask_all(PlacementPtr placement, Make make, http::TimePoint deadline,
                                                         std::optional<std::uint32_t> only = std::nullopt);
  // Adds to the problem of a push whether other shards have taken their part.
  [[nodiscard]] static http::Problem with_what_was_applied(http::Problem problem, Asked const& asked);
  static boost::asio::awaitable<std::optional<http::Problem>> refuse(PlacementPtr placement, Push push);
  boost::asio::awaitable<void> ask(AskedPtr asked, std::size_t shard);

  boost::asio::any_io_executor executor_;
  PlacementDirectory directory_;
  http::PeerClient owners_;
  bool const is_patient_;
  http::TaskGroup tasks_;
};

}  // namespace chorus::parameters
