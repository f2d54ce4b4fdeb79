// What can go wrong between a coordinator and etcd.
#pragma once

#include <system_error>

namespace chorus::coordinator {

enum class EtcdErrc {
  unreachable = 1,  // no endpoint answers in time, or the cluster has no quorum
  refused,          // wrong user, password or certificate; what etcd says of a request
  no_lease,         // it has expired, or was revoked
  not_leader,       // another coordinator leads
  emptied,          // what this process has seen there is gone
  newer,            // keys of a format that this release does not know
  unknown_cluster,  // etcd has no keys of it
  wrong_cluster,    // rows of a cluster of another name
  malformed,        // no etcd answers there
};

[[nodiscard]] std::error_category const& etcd_category();
[[nodiscard]] inline std::error_code make_error_code(EtcdErrc e) { return {static_cast<int>(e), etcd_category()}; }

}  // namespace chorus::coordinator

template <>
struct std::is_error_code_enum<chorus::coordinator::EtcdErrc> : std::true_type {};
