#include "server/coordinator/stores/moved_rows.hpp"

#include "server/coordinator/high_availability/held_cluster.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/journal/journal_state.hpp"

namespace chorus::coordinator {
namespace {

bool is_in_etcd(StoreOptions const& options) { return !options.etcd.endpoints.empty(); }

Result<ExportedRows> rows_of(Store& store) {
  auto rows = store.read();
  if (!rows) return rows.error();
  ExportedRows exported;
  exported.cluster = store.identity().cluster;
  exported.rows = std::move(*rows);
  return exported;
}

Status fill(Store& store, std::span<Row const> rows) {
  auto const present = store.read();
  if (!present) return present.error();
  if (!present->empty())
    return Error(JournalErrc::not_empty,
                 "the journal " + store.place() + " is not empty: rows are imported into an empty one only");
  return store.write(rows);
}

}  // namespace

Result<ExportedRows> take_rows(StoreOptions const& from) {
  if (is_in_etcd(from)) {
    auto const held = HeldCluster::hold(from.etcd, std::nullopt);
    if (!held) return held.error();
    return rows_of((*held)->store());
  }
  if (!identity_of(from.journal)) return Error(JournalErrc::not_there, "there is no journal " + from.journal);
  auto const file = JournalFile::open(from.journal);
  if (!file) return file.error();
  return rows_of(**file);
}

Status put_rows(ExportedRows const& exported, StoreOptions const& to, std::uint64_t new_cluster_id) {
  if (auto const state = parse_rows(exported.rows); !state) return state.error();
  if (is_in_etcd(to)) {
    if (!exported.cluster.empty() && exported.cluster != to.etcd.cluster)
      return Error(EtcdErrc::wrong_cluster, "the rows are of cluster " + exported.cluster + ", and not of cluster " +
                                                to.etcd.cluster + ": --cluster names another one");
    auto const held = HeldCluster::hold(to.etcd, new_cluster_id);
    if (!held) return held.error();
    return fill((*held)->store(), exported.rows);
  }
  auto const file = JournalFile::open(to.journal);
  if (!file) return file.error();
  return fill(**file, exported.rows);
}

}  // namespace chorus::coordinator
