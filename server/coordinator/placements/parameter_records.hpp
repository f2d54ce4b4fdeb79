// The records of all parameters: by name, by group and by worker; their epochs; their rows in the journal.
#pragma once

#include <map>
#include <set>
#include <string_view>

#include "server/coordinator/groups/epochs.hpp"
#include "server/coordinator/placements/parameter_record.hpp"
#include "server/coordinator/placements/placement_tools.hpp"

namespace chorus::coordinator {

// Used on one thread. The tools outlive this.
class ParameterRecords {
 public:
  explicit ParameterRecords(PlacementTools const& tools) : tools_(tools) {}
  ParameterRecords(ParameterRecords const&) = delete;
  ParameterRecords& operator=(ParameterRecords const&) = delete;

  void restore(JournalState const& state);

  using All = std::map<std::string, ParameterRecordPtr, std::less<>>;
  [[nodiscard]] All const& all() const { return records_; }
  [[nodiscard]] ParameterRecordPtr find(std::string_view name) const;  // null if there is none
  // Returns null if there is no such shard.
  [[nodiscard]] ParameterRecordPtr with(ShardKey const& key) const;
  using Names = std::set<std::string>;
  [[nodiscard]] std::map<std::string, Names, std::less<>> const& by_group() const { return of_group_; }
  // Shards that the worker has in any role. Valid until the next change.
  [[nodiscard]] std::set<ShardKey> const& shards_on(std::string const& worker) const;
  [[nodiscard]] Load const& load() const { return load_; }
  [[nodiscard]] Epochs& epochs() { return epochs_; }

  // Adds a parameter, and chooses workers for its shards.
  ParameterRecordPtr add(CheckedParameter checked, api::ParameterRequest request,
                         std::vector<api::Member> const& members);
  // The record has no workers any more, and is deleted. The last epoch of the name is kept: no other parameter of this
  // name gets it again.
  void remove(ParameterRecordPtr const& record);

  // These forget what was known of the worker before in this role. The caller keeps the shard. A deleted record gets no
  // worker any more.
  void set_owner(ParameterRecord& record, std::uint32_t shard, std::optional<api::Member> member);
  void set_backup(ParameterRecord& record, std::uint32_t shard, std::optional<api::Member> member);
  // The load of the incoming owner counts at once, so that no other shard chooses the same worker for the same reason.
  void set_incoming(ParameterRecord& record, std::uint32_t shard, std::optional<api::Member> member);

  // Gives the shard a new epoch, and keeps it.
  void draw_epoch(ParameterRecord& record, std::uint32_t shard);
  // Sets the clients as requested; otherwise to the group's workers, including lost ones until the next PUT of the
  // group.
  void update_clients(ParameterRecord& record) const;

  // Writes the present state into the journal.
  void keep(ParameterRecord const& record);
  void keep(ParameterRecord const& record, std::uint32_t shard);

 private:
  using Role = std::optional<api::Member> ShardPlacement::*;
  void set(ParameterRecord& record, std::uint32_t shard, Role role, std::optional<api::Member> member);
  void forget(ParameterRecord const& record);

  static constexpr std::size_t names_kept = 4096;

  PlacementTools const& tools_;
  All records_;
  std::map<std::string, std::set<ShardKey>, std::less<>> shards_on_;
  std::map<std::string, Names, std::less<>> of_group_;
  Epochs epochs_{names_kept};
  Load load_;
};

}  // namespace chorus::coordinator
