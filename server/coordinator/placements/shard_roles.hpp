// Tells workers their roles for shards.
#pragma once

#include "server/coordinator/placements/parameter_records.hpp"
#include "server/coordinator/placements/shard_assignments.hpp"

namespace chorus::coordinator {

enum class ShardRole : std::uint8_t { owner, backup };

// With which data the worker goes on.
enum class ShardData : std::uint8_t {
  initial,  // a new parameter: its first values, or those of its checkpoint
  kept,     // owner and backup are the same as before, and keep their copies
  copied,   // the owner keeps its data, and fills the backup from the beginning
  logged    // those of the owner's log
};

// Used on one thread. The objects in the constructor outlive stop().
class ShardRoles {
 public:
  ShardRoles(PlacementTools const& tools, ParameterRecords& records);

  // Tells a worker its role under the shard's epoch, which is in the journal before. Problems: those of Journal::flush;
  // worker_unreachable; the worker's.
  boost::asio::awaitable<std::optional<http::Problem>> tell(ParameterRecordPtr record, std::uint32_t shard,
                                                            api::Member member, ShardRole role, ShardData data);
  // Tells the backup and the incoming owner, if there are any, the shard's epoch. They keep their copies.
  boost::asio::awaitable<std::optional<http::Problem>> tell_followers(ParameterRecordPtr record, std::uint32_t shard);

  // Returns the term of the worker's lease.
  [[nodiscard]] std::optional<std::uint64_t> term_of(api::Member const& member) const;

  boost::asio::awaitable<void> stop() { return assignments_.stop(); }

 private:
  void heed_epoch(std::string const& name, http::Problem const& problem);

  PlacementTools const& tools_;
  ParameterRecords& records_;
  ShardAssignments assignments_;
};

}  // namespace chorus::coordinator
