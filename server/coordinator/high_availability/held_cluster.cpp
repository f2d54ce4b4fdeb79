#include "server/coordinator/high_availability/held_cluster.hpp"

#include "base/runtime/run_to_end.hpp"

namespace chorus::coordinator {
namespace {

using std::chrono::steady_clock;

constexpr auto patience_of_holder = std::chrono::seconds(5);

ElectionPatience patience_of_election() {
  ElectionPatience held;
  held.lease = std::chrono::seconds(60);  // nothing renews the lease: a killed holder blocks the cluster for so long
  held.answer = patience_of_holder;
  return held;
}

}  // namespace

HeldCluster::HeldCluster(EtcdOptions options, std::uint64_t new_cluster_id)
    : etcd_(io_.get_executor(), std::move(options)), election_(etcd_, new_cluster_id, patience_of_election()) {}

HeldCluster::~HeldCluster() { http::run_to_end(io_, election_.resign(steady_clock::now() + patience_of_holder)); }

std::string HeldCluster::place() const {
  return "cluster " + etcd_.options().cluster + " in etcd (" + etcd_.endpoint() + ")";
}

Status HeldCluster::check_known() {
  auto const known =
      http::run_to_end(io_, etcd_.get(etcd_.options().prefix() + "format", steady_clock::now() + patience_of_holder));
  if (!known) return known.error();
  if (!*known) return Error(EtcdErrc::unknown_cluster, "there is no " + place());
  return ok();
}

Status HeldCluster::lead() {
  auto const tried = http::run_to_end(io_, election_.try_to_lead(std::string(url_of_holder)));
  if (!tried) return tried.error();
  if (!*tried && election_.leader() == url_of_holder)
    return Error(EtcdErrc::not_leader, "another chorus journal command has " + place() +
                                           ": wait until it has ended; if it was killed, for a minute");
  if (!*tried)
    return Error(EtcdErrc::not_leader, election_.leader().value_or("another coordinator") + " leads " + place() +
                                           ": stop all of its coordinators first");
  store_.emplace(etcd_.options(), **tried, [] {});
  return ok();
}

Result<std::unique_ptr<HeldCluster>> HeldCluster::hold(EtcdOptions options,
                                                       std::optional<std::uint64_t> new_cluster_id) {
  std::unique_ptr<HeldCluster> held(new HeldCluster(std::move(options), new_cluster_id.value_or(0)));
  if (!new_cluster_id)
    if (auto const known = held->check_known(); !known) return known.error();
  if (auto const leads = held->lead(); !leads) return leads.error();
  return held;
}

}  // namespace chorus::coordinator
