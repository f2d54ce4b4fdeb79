#include "worker/service/memory/client_memory.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "worker/memory/pages/errc.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;

constexpr std::size_t tensors_shown = 5;

// Each region keeps a descriptor, and most descriptors are for connections.
std::size_t region_limit() {
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return ClientMemory::max_regions;
  return std::min<std::uint64_t>(ClientMemory::max_regions, std::max<std::uint64_t>(descriptors.rlim_cur / 4, 1));
}

Problem unknown_region(std::string const& name) {
  return {ProblemCode::unknown_region, "no region " + name.substr(0, 80) + " is registered here"};
}

Problem to_field_problem(Error const& error) {
  if (error.code == devices::GpuErrc::bad_handle) return invalid_field("/handle", error.detail);
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

api::GpuRegion ClientMemory::describe(GpuRegion const& region, Residents const& residents) {
  api::GpuRegion shown;
  shown.name = region.name();
  shown.device = devices::device_name(region.gpu().gpu().info().index);
  shown.offset = region.part().offset;
  shown.bytes = region.part().bytes;
  shown.state = region.damage() ? "damaged" : "ready";
  if (auto const found = residents.find(&region); found != residents.end()) shown.tensors = found->second;
  return shown;
}

Problem ClientMemory::in_use(memory::Region const& region) const {
  Problem problem(ProblemCode::region_in_use, "region " + region.name());
  auto const living = residents();
  auto const found = living.find(&region);
  auto const tensors = found != living.end() ? found->second : std::vector<std::string>();
  if (tensors.empty()) problem.detail += " is being read";
  for (std::size_t i = 0; i < tensors.size() && i < tensors_shown; ++i)
    problem.detail += (i == 0 ? " holds " : ", ") + tensors[i];
  if (tensors.size() > tensors_shown)
    problem.detail += " and " + std::to_string(tensors.size() - tensors_shown) + " more";
  return problem;
}

std::optional<Problem> ClientMemory::check_name(std::string const& name, bool is_taken) const {
  if (is_taken) return Problem(ProblemCode::region_in_use, "region " + name + " is of the other kind of memory");
  bool const is_known = regions_.contains(name) || gpu_regions_.contains(name);
  auto const most = region_limit();
  if (is_known || regions_.size() + gpu_regions_.size() < most) return std::nullopt;
  return Problem(ProblemCode::unavailable, std::to_string(most) + " regions are registered already");
}

// Unmapping takes longer for larger regions.
template <class Kept>
void ClientMemory::let_go(std::shared_ptr<Kept const> region) {
  if (region == nullptr) return;
  auto end = [region = std::move(region)]() mutable {
    region.reset();
    return ok();
  };
  static_cast<void>(helper_.start(std::move(end)));
}

template <class Kept>
Checked<bool> ClientMemory::replace(Regions<Kept>& regions, std::string const& name, std::shared_ptr<Kept const> region,
                                    bool is_same) {
  if (is_same) return false;
  auto const [found, is_new] = regions.try_emplace(name);
  if (!is_new && found->second.use_count() != 1) return in_use(*found->second);
  let_go(std::exchange(found->second, std::move(region)));
  return is_new;
}

awaitable<Checked<ClientMemory::Registered<api::Region>>> ClientMemory::put(std::string name,
                                                                            api::RegionRequest request) {
  auto const open = [name, request] {
    return memory::ClientRegion::open(name, request.key, request.offset, request.bytes);
  };
  auto region = co_await helper_.compute(open);
  if (!region) co_return to_field_problem(region.error());
  if (auto problem = check_name(name, gpu_regions_.contains(name))) co_return std::move(*problem);
  auto const now = regions_.find(name);
  bool const is_same = now != regions_.end() && now->second->is_same(**region) && now->second->key() == request.key &&
                       now->second->is_whole();
  auto const is_new = replace(regions_, name, std::move(*region), is_same);
  if (!is_new) co_return is_new.error();
  co_return Registered<api::Region>{describe(*regions_.at(name), residents()), *is_new};
}

awaitable<Checked<ClientMemory::Registered<api::GpuRegion>>> ClientMemory::put(std::string name,
                                                                               api::GpuRegionRequest request) {
  auto const handle = parse_handle(request.handle);
  if (!handle) co_return invalid_field("/handle", "is not 64 bytes in base64");
  auto const index = devices::parse_device(request.device);
  if (!index) co_return invalid_field("/device", index.error().detail);
  if (!*index) co_return invalid_field("/device", "is cpu: that memory is registered at /v1/shm/system");
  auto const found = gpus_.find(**index);
  if (!found) co_return invalid_field("/device", found.error().detail);
  if (request.bytes == 0) co_return invalid_field("/bytes", "is 0");
  if (auto problem = check_name(name, regions_.contains(name))) co_return std::move(*problem);

  auto& gpu = **found;
  GpuRegion::Part const part{*handle, request.offset, request.bytes};
  auto const is_there = [&] {
    auto const now = gpu_regions_.find(name);
    return now != gpu_regions_.end() && now->second->part() == part && &now->second->gpu() == &gpu && !gpu.lost();
  };
  std::shared_ptr<GpuRegion const> region;
  if (!is_there()) {
    auto const open = [name, part, &gpu] { return GpuRegion::open(name, gpu, part); };
    auto opened = co_await helper_.compute(open);
    if (!opened) co_return to_field_problem(opened.error());
    region = std::move(*opened);
    // Other requests may have run meanwhile.
    if (auto problem = check_name(name, regions_.contains(name))) co_return std::move(*problem);
  }
  bool const is_same = region == nullptr || is_there();
  auto const is_new = replace(gpu_regions_, name, std::move(region), is_same);
  if (!is_new) co_return is_new.error();
  co_return Registered<api::GpuRegion>{describe(*gpu_regions_.at(name), residents()), *is_new};
}

Checked<api::Region> ClientMemory::get(std::string const& name) const {
  auto const found = regions_.find(name);
  if (found == regions_.end()) return unknown_region(name);
  return describe(*found->second, residents());
}

Checked<api::GpuRegion> ClientMemory::get_on_gpu(std::string const& name) const {
  auto const found = gpu_regions_.find(name);
  if (found == gpu_regions_.end()) return unknown_region(name);
  return describe(*found->second, residents());
}

std::vector<api::Region> ClientMemory::list(std::string const& after, std::size_t limit) const {
  std::vector<api::Region> regions;
  auto const living = residents();
  for (auto region = regions_.upper_bound(after); region != regions_.end() && regions.size() < limit; ++region)
    regions.push_back(describe(*region->second, living));
  return regions;
}

std::vector<api::GpuRegion> ClientMemory::list_on_gpus(std::string const& after, std::size_t limit) const {
  std::vector<api::GpuRegion> regions;
  auto const living = residents();
  for (auto region = gpu_regions_.upper_bound(after); region != gpu_regions_.end() && regions.size() < limit; ++region)
    regions.push_back(describe(*region->second, living));
  return regions;
}

template <class Kept>
std::optional<Problem> ClientMemory::erase(Regions<Kept>& regions, std::string const& name) {
  auto const found = regions.find(name);
  if (found == regions.end()) return unknown_region(name);
  if (found->second.use_count() != 1) return in_use(*found->second);
  let_go(std::move(found->second));
  regions.erase(found);
  return std::nullopt;
}

std::optional<Problem> ClientMemory::erase(std::string const& name) { return erase(regions_, name); }
std::optional<Problem> ClientMemory::erase_on_gpu(std::string const& name) { return erase(gpu_regions_, name); }

Checked<std::shared_ptr<tensors::Block>> ClientMemory::block(api::Place const& place, std::uint64_t size_bytes,
                                                             Dtype dtype) const {
  auto const in_host = regions_.find(place.region);
  auto const on_gpu = gpu_regions_.find(place.region);
  std::shared_ptr<memory::Region const> region;
  if (in_host != regions_.end()) region = in_host->second;
  if (on_gpu != gpu_regions_.end()) region = on_gpu->second;
  if (region == nullptr) {
    auto problem = unknown_region(place.region);
    problem.errors.push_back({"/shm/region", "is not registered here"});
    return problem;
  }
  if (auto const why = region->damage())
    return Problem(ProblemCode::region_damaged, "region " + region->name() + ": " + *why);
  auto const bytes = region->bytes();
  if (place.offset > bytes.size() || size_bytes > bytes.size() - place.offset)
    return invalid_field("/shm/offset", "is " + std::to_string(place.offset) + ": the tensor has " +
                                            std::to_string(size_bytes) + " bytes, the region " +
                                            std::to_string(bytes.size()));
  // Objects and allocations begin at addresses that suit every dtype.
  if ((reinterpret_cast<std::uintptr_t>(bytes.data()) + place.offset) % element_bytes(dtype) != 0)
    return invalid_field("/shm/offset", "is " + std::to_string(place.offset) +
                                            ": in the object it must be a multiple of " +
                                            std::to_string(element_bytes(dtype)) + " for " + std::string(name(dtype)));
  auto* const gpu = on_gpu != gpu_regions_.end() ? &on_gpu->second->gpu() : nullptr;
  return std::make_shared<tensors::Block>(std::move(region), bytes.subspan(place.offset, size_bytes), gpu);
}

}  // namespace chorus::service
