#include "metrics/families/leadership_families.hpp"

namespace chorus::metrics {

void add_leadership(Families& families, LeadershipScrape const& leadership) {
  families.push_back(single(Id::coordinator_leading, leadership.leads ? 1 : 0));
  if (leadership.term) families.push_back(single(Id::leadership_term, static_cast<double>(*leadership.term)));
  auto requests = make_family(Id::etcd_requests);
  for (auto const& [url, answered, unreachable, refused, malformed] : leadership.endpoints) {
    add_value(requests, Id::etcd_requests, {url, "answered"}, static_cast<double>(answered));
    add_value(requests, Id::etcd_requests, {url, "unreachable"}, static_cast<double>(unreachable));
    add_value(requests, Id::etcd_requests, {url, "refused"}, static_cast<double>(refused));
    add_value(requests, Id::etcd_requests, {url, "malformed"}, static_cast<double>(malformed));
  }
  families.push_back(std::move(requests));
}

}  // namespace chorus::metrics
