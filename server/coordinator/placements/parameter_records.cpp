#include "server/coordinator/placements/parameter_records.hpp"

#include <algorithm>

namespace chorus::coordinator {
namespace {

std::optional<api::Member> without_roles(std::optional<api::Member> member) {
  if (member) member->roles.clear();
  return member;
}

}  // namespace

void ParameterRecords::restore(JournalState const& state) {
  auto const floor = state.counters.find(Counter::parameter_epoch_floor);
  epochs_.restore(state.parameter_epochs,
                  floor == state.counters.end() ? 0 : static_cast<std::uint32_t>(floor->second));
  for (auto const& kept : state.parameters) {
    auto const record = std::make_shared<ParameterRecord>(tools_.executor);
    record->request = kept.request;
    record->parameter = kept.parameter;
    record->checkpoint = kept.checkpoint;
    record->clients_epoch = kept.clients_epoch;
    record->is_established = kept.established;
    record->is_resumed = true;
    records_[kept.parameter.name] = record;
  }
  for (auto const& kept : state.shards) {
    auto const record = find(kept.parameter);
    if (record == nullptr || record->shards.size() != kept.shard) continue;
    auto& shard = record->shards.emplace_back();
    shard.range = {kept.begin, kept.end};
    shard.has_log = record->parameter.durability == "log";
    shard.epoch = kept.epoch;
    // A move starts again if it is still useful.
    shard.clients_epoch = kept.incoming ? ShardPlacement::never_told : kept.clients_epoch;
    set_owner(*record, kept.shard, kept.owner);
    set_backup(*record, kept.shard, kept.backup);
    shard.is_backup_complete = kept.backup_complete;
    shard.former = kept.former;
    shard.is_unconfirmed = kept.former.has_value();
    shard.owner_has_ended = kept.owner_ended;
    shard.backup_has_ended = kept.backup_ended;
    shard.backup_epoch = kept.backup_epoch.value_or(kept.epoch);
    record->parameter.epoch = std::max(record->parameter.epoch, kept.epoch);
    epochs_.seen(kept.parameter, kept.epoch);
  }
  // Nothing else of these parameters had reached the disk.
  std::erase_if(records_, [](auto const& entry) { return entry.second->shards.empty(); });
  for (auto const& [name, record] : records_) of_group_[record->parameter.group].insert(name);
}

ParameterRecordPtr ParameterRecords::find(std::string_view name) const {
  auto const found = records_.find(name);
  return found == records_.end() ? nullptr : found->second;
}

ParameterRecordPtr ParameterRecords::with(ShardKey const& key) const {
  auto record = find(key.first);
  return record != nullptr && key.second < record->shards.size() ? record : nullptr;
}

std::set<ShardKey> const& ParameterRecords::shards_on(std::string const& worker) const {
  static std::set<ShardKey> const none;
  auto const found = shards_on_.find(worker);
  return found == shards_on_.end() ? none : found->second;
}

ParameterRecordPtr ParameterRecords::add(CheckedParameter checked, api::ParameterRequest request,
                                         std::vector<api::Member> const& members) {
  auto const record = std::make_shared<ParameterRecord>(tools_.executor);
  record->request = std::move(request);
  record->parameter = checked.parameter;
  update_clients(*record);
  auto const& name = record->parameter.name;
  record->parameter.epoch = epochs_.next(name);
  record->parameter.uid = api::to_hex(tools_.random());
  records_[name] = record;
  of_group_[record->parameter.group].insert(name);
  std::vector<std::string> used;
  auto const ranges = cut(checked, members.size());
  record->shards.resize(ranges.size());
  for (std::uint32_t i = 0; i < ranges.size(); ++i) {
    auto& shard = record->shards[i];
    shard.range = ranges[i];
    shard.has_log = record->parameter.durability == "log";
    shard.epoch = shard.backup_epoch = record->parameter.epoch;
    if (used.size() >= members.size()) used.clear();
    auto const& owner = least_loaded(members, load_, used);
    used.push_back(owner.worker);
    set_owner(*record, i, owner);
    if (record->parameter.replicas < 2) continue;
    if (auto const* backup = pick_backup(members, owner, load_)) set_backup(*record, i, *backup);
  }
  keep(*record);
  for (std::uint32_t i = 0; i < record->shards.size(); ++i) keep(*record, i);
  return record;
}

void ParameterRecords::remove(ParameterRecordPtr const& record) {
  auto const& name = record->parameter.name;
  record->is_deleted = true;
  record->changed.notify_all();
  for (std::uint32_t i = 0; i < record->shards.size(); ++i) {
    record->shards[i].former.reset();
    record->shards[i].superseded.clear();
    set_incoming(*record, i, std::nullopt);
    set_owner(*record, i, std::nullopt);
    set_backup(*record, i, std::nullopt);
  }
  if (auto const group = of_group_.find(record->parameter.group); group != of_group_.end()) {
    group->second.erase(name);
    if (group->second.empty()) of_group_.erase(group);
  }
  forget(*record);
  if (find(name) == record) records_.erase(name);
}

void ParameterRecords::set(ParameterRecord& record, std::uint32_t number, Role role,
                           std::optional<api::Member> member) {
  auto& shard = record.shards[number];
  auto& place = shard.*role;
  auto const bytes = record.load_of(number);
  ShardKey const key(record.parameter.name, number);
  if (place) {
    load_[place->worker] -= bytes;
    shards_on_[place->worker].erase(key);
  }
  place = record.is_deleted ? std::nullopt : std::move(member);
  if (place) load_[place->worker] += bytes;
  for (auto const* present : {&shard.owner, &shard.backup, &shard.incoming})
    if (*present) shards_on_[(*present)->worker].insert(key);
}

void ParameterRecords::set_owner(ParameterRecord& record, std::uint32_t number, std::optional<api::Member> member) {
  set(record, number, &ShardPlacement::owner, std::move(member));
  auto& shard = record.shards[number];
  for (auto* const said_before : {&shard.lost_by, &shard.refused_by, &shard.why_refused}) said_before->clear();
  shard.owner_has_ended = false;
}

void ParameterRecords::set_backup(ParameterRecord& record, std::uint32_t number, std::optional<api::Member> member) {
  set(record, number, &ShardPlacement::backup, std::move(member));
  auto& shard = record.shards[number];
  shard.is_backup_complete = shard.backup_has_ended = shard.is_backup_unfit = false;
}

void ParameterRecords::set_incoming(ParameterRecord& record, std::uint32_t number, std::optional<api::Member> member) {
  set(record, number, &ShardPlacement::incoming, std::move(member));
}

void ParameterRecords::draw_epoch(ParameterRecord& record, std::uint32_t number) {
  record.parameter.epoch = epochs_.next(record.parameter.name);
  record.shards[number].epoch = record.parameter.epoch;
  keep(record, number);
}

void ParameterRecords::update_clients(ParameterRecord& record) const {
  if (record.parameter.staleness < 0) return record.parameter.clients.clear();
  if (record.request.clients) return;
  auto const group = tools_.cluster.groups().find(record.parameter.group);
  if (group.has_error()) return;
  std::vector<std::string> clients;
  for (auto const& member : group.value()->members) clients.push_back(member.worker);
  if (clients == record.parameter.clients) return;
  record.parameter.clients = std::move(clients);
  ++record.clients_epoch;
}

void ParameterRecords::keep(ParameterRecord const& record) {
  if (!tools_.journal.on_disk() || record.is_deleted) return;
  tools_.journal.write(row_of(JournalParameter{record.request, record.parameter, record.checkpoint,
                                               record.clients_epoch, record.is_established}));
}

void ParameterRecords::keep(ParameterRecord const& record, std::uint32_t number) {
  if (!tools_.journal.on_disk() || record.is_deleted) return;
  auto const& shard = record.shards[number];
  tools_.journal.write(row_of(JournalShard{
      record.parameter.name, number, shard.range.begin, shard.range.end, shard.epoch, without_roles(shard.owner),
      without_roles(shard.backup), without_roles(shard.incoming), shard.is_backup_complete, shard.clients_epoch,
      without_roles(shard.former), shard.owner_has_ended, shard.backup_has_ended, shard.backup_epoch}));
}

void ParameterRecords::forget(ParameterRecord const& record) {
  auto const& name = record.parameter.name;
  auto const forgotten = epochs_.retire(name);
  if (!tools_.journal.on_disk()) return;
  tools_.journal.write(without(Table::parameters, name));
  for (std::uint32_t i = 0; i < record.shards.size(); ++i) tools_.journal.write(without_shard(name, i));
  if (forgotten) {
    tools_.journal.write(without(Table::parameter_epochs, *forgotten));
    tools_.journal.write(row_of(Counter::parameter_epoch_floor, epochs_.floor()));
  }
  if (forgotten != name) tools_.journal.write(row_of_parameter(name, epochs_.kept(name)));
}

}  // namespace chorus::coordinator
