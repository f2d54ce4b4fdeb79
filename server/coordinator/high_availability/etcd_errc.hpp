// Errors of a coordinator's use of etcd.
#pragma once

#include <system_error>

namespace chorus::coordinator {

enum class EtcdErrc {
  unreachable = 1,  // no endpoint answers in time, or the cluster has no quorum
  refused,          // wrong user, password or certificate, or a request that etcd rejects
  no_lease,         // the lease has expired, or was revoked
  not_leader,       // another coordinator leads
  emptied,          // the keys that this process has seen are gone
  made_anew,        // another cluster has the name of the one that this process has seen
  newer,            // the keys have a format that this release does not support
  unknown_cluster,  // etcd has no keys of the cluster
  wrong_cluster,    // the rows belong to a cluster of another name
  malformed,        // the endpoint is not etcd
};

[[nodiscard]] std::error_category const& etcd_category();
[[nodiscard]] inline std::error_code make_error_code(EtcdErrc e) { return {static_cast<int>(e), etcd_category()}; }

}  // namespace chorus::coordinator

template <>
struct std::is_error_code_enum<chorus::coordinator::EtcdErrc> : std::true_type {};
