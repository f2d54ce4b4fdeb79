#include "worker/service/client_memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "worker/memory/errc.hpp"
#include "worker/service/problems.hpp"

namespace chorus::service {
namespace {

using http::Checked;
using http::Problem;
using http::ProblemCode;

constexpr std::size_t tensors_shown = 5;

// Each keeps a descriptor, of which connections need most.
std::size_t region_limit() {
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return ClientMemory::max_regions;
  return std::min<std::uint64_t>(ClientMemory::max_regions, std::max<std::uint64_t>(descriptors.rlim_cur / 4, 1));
}

Problem unknown_region(std::string const& name) {
  return {ProblemCode::unknown_region, "no region " + name.substr(0, 80) + " is registered here"};
}

Problem to_field_problem(Error const& error) {
  if (error.code == memory::MemoryErrc::out_of_range) return invalid_field("/bytes", error.detail);
  if (problem_code(error.code) == ProblemCode::invalid_field) return invalid_field("/key", error.detail);
  return to_problem(error);
}

}  // namespace

std::optional<Problem> ClientMemory::refusal() const {
  if (is_allowed_) return std::nullopt;
  return Problem(ProblemCode::forbidden, "this worker uses no client's memory: start it with --allow-client-shm");
}

ClientMemory::Residents ClientMemory::residents() const {
  Residents residents;
  for (auto const& tensor : store_.list("", std::numeric_limits<std::size_t>::max()))
    if (auto const* region = tensor.data->region(); region != nullptr) residents[region].push_back(tensor.name);
  return residents;
}

api::Region ClientMemory::describe(memory::ClientRegion const& region, Residents const& residents) {
  api::Region shown;
  shown.name = region.name();
  shown.key = region.key();
  shown.offset = region.offset();
  shown.bytes = region.bytes().size();
  shown.state = region.is_whole() ? "ready" : "damaged";
  if (auto const found = residents.find(&region); found != residents.end()) shown.tensors = found->second;
  return shown;
}

Problem ClientMemory::in_use(memory::ClientRegion const& region) const {
  Problem problem(ProblemCode::region_in_use, "region " + region.name());
  auto const tensors = describe(region, residents()).tensors;
  if (tensors.empty()) problem.detail += " is being read";
  for (std::size_t i = 0; i < tensors.size() && i < tensors_shown; ++i)
    problem.detail += (i == 0 ? " holds " : ", ") + tensors[i];
  if (tensors.size() > tensors_shown)
    problem.detail += " and " + std::to_string(tensors.size() - tensors_shown) + " more";
  return problem;
}

Checked<ClientMemory::Registered> ClientMemory::put(std::string const& name, api::RegionRequest const& request) {
  auto region = memory::ClientRegion::open(name, request.key, request.offset, request.bytes);
  if (!region) return to_field_problem(region.error());
  auto const found = regions_.find(name);
  if (found == regions_.end()) {
    if (auto const most = region_limit(); regions_.size() >= most)
      return Problem(ProblemCode::unavailable, std::to_string(most) + " regions are registered already");
    regions_.emplace(name, *region);
    return Registered{describe(**region, residents()), true};
  }
  auto& now = found->second;
  if (now->is_same(**region) && now->key() == request.key && now->is_whole())
    return Registered{describe(*now, residents()), false};
  if (now.use_count() != 1) return in_use(*now);
  now = std::move(*region);
  return Registered{describe(*now, residents()), false};
}

Checked<api::Region> ClientMemory::get(std::string const& name) const {
  auto const found = regions_.find(name);
  if (found == regions_.end()) return unknown_region(name);
  return describe(*found->second, residents());
}

std::vector<api::Region> ClientMemory::list(std::string const& after, std::size_t limit) const {
  std::vector<api::Region> regions;
  auto const living = residents();
  for (auto region = regions_.upper_bound(after); region != regions_.end() && regions.size() < limit; ++region)
    regions.push_back(describe(*region->second, living));
  return regions;
}

std::optional<Problem> ClientMemory::erase(std::string const& name) {
  auto const found = regions_.find(name);
  if (found == regions_.end()) return unknown_region(name);
  if (found->second.use_count() != 1) return in_use(*found->second);
  regions_.erase(found);
  return std::nullopt;
}

Checked<std::shared_ptr<tensors::Block>> ClientMemory::block(api::Place const& place, std::uint64_t size_bytes,
                                                             Dtype dtype) const {
  auto const found = regions_.find(place.region);
  if (found == regions_.end()) {
    auto problem = unknown_region(place.region);
    problem.errors.push_back({"/shm/region", "is not registered here"});
    return problem;
  }
  auto const& region = found->second;
  if (!region->is_whole())
    return Problem(ProblemCode::region_damaged,
                   "region " + region->name() + ": " + region->key() + " no longer reaches to its end");
  auto const room = region->bytes().size();
  if (place.offset > room || size_bytes > room - place.offset)
    return invalid_field("/shm/offset", "is " + std::to_string(place.offset) + ": the tensor has " +
                                            std::to_string(size_bytes) + " bytes, the region " + std::to_string(room));
  if ((region->offset() + place.offset) % element_bytes(dtype) != 0)
    return invalid_field("/shm/offset", "is " + std::to_string(place.offset) +
                                            ": in the object it must be a multiple of " +
                                            std::to_string(element_bytes(dtype)) + " for " + std::string(name(dtype)));
  return std::make_shared<tensors::Block>(region, region->bytes().subspan(place.offset, size_bytes));
}

}  // namespace chorus::service
