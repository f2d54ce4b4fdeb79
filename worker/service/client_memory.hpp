// The regions of clients' memory that are registered at this worker, and the tensors that are placed there.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http/api/client_memory.hpp"
#include "http/problem.hpp"
#include "worker/memory/client_region.hpp"
#include "worker/service/gpu_region.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// On the control thread. Store and GPUs outlive it; tensors keep the regions that they lie in.
class ClientMemory {
 public:
  // Each region of the host is guarded against truncation, and the process can guard so many mappings.
  static constexpr std::size_t max_regions = 1024;

  ClientMemory(bool is_allowed, tensors::Store const& store, devices::Gpus const& gpus)
      : is_allowed_(is_allowed), store_(store), gpus_(gpus) {}

  // Problem forbidden, with the flag, unless the worker was started with it.
  [[nodiscard]] std::optional<http::Problem> refusal() const;

  template <class Region>
  struct Registered {
    Region region;
    bool is_new = false;
  };
  // The same part of the same object again is what is there already; another one takes its place if nothing uses it.
  // Names are distinct over both kinds. Problems: invalid_field at /key, /offset, /bytes, /handle, /device;
  // region_in_use; unavailable; device_failed.
  [[nodiscard]] http::Checked<Registered<api::Region>> put(std::string const& name, api::RegionRequest const& request);
  [[nodiscard]] http::Checked<Registered<api::GpuRegion>> put(std::string const& name,
                                                              api::GpuRegionRequest const& request);
  [[nodiscard]] http::Checked<api::Region> get(std::string const& name) const;            // unknown_region
  [[nodiscard]] http::Checked<api::GpuRegion> get_on_gpu(std::string const& name) const;  // unknown_region
  [[nodiscard]] std::vector<api::Region> list(std::string const& after, std::size_t limit) const;
  [[nodiscard]] std::vector<api::GpuRegion> list_on_gpus(std::string const& after, std::size_t limit) const;
  // Problems: unknown_region, region_in_use while tensors lie there or are being sent from there.
  [[nodiscard]] std::optional<http::Problem> erase(std::string const& name);
  [[nodiscard]] std::optional<http::Problem> erase_on_gpu(std::string const& name);

  // Memory for a tensor. Problems: unknown_region, region_damaged, invalid_field at /shm/offset.
  [[nodiscard]] http::Checked<std::shared_ptr<tensors::Block>> block(api::Place const& place, std::uint64_t size_bytes,
                                                                     Dtype dtype) const;

 private:
  template <class Kept>
  using Regions = std::map<std::string, std::shared_ptr<Kept const>>;
  // Names of tensors by where they lie.
  using Residents = std::map<memory::Region const*, std::vector<std::string>>;
  [[nodiscard]] Residents residents() const;
  [[nodiscard]] static api::Region describe(memory::ClientRegion const& region, Residents const& residents);
  [[nodiscard]] static api::GpuRegion describe(GpuRegion const& region, Residents const& residents);
  [[nodiscard]] http::Problem in_use(memory::Region const& region) const;
  [[nodiscard]] std::optional<http::Problem> check_name(std::string const& name, bool is_taken) const;
  // Whether it was there already is for the caller to say.
  template <class Kept>
  [[nodiscard]] http::Checked<bool> replace(Regions<Kept>& regions, std::string const& name,
                                            std::shared_ptr<Kept const> region, bool is_same);
  template <class Kept>
  [[nodiscard]] std::optional<http::Problem> erase(Regions<Kept>& regions, std::string const& name);

  bool const is_allowed_;
  tensors::Store const& store_;
  devices::Gpus const& gpus_;
  Regions<memory::ClientRegion> regions_;
  Regions<GpuRegion> gpu_regions_;
};

}  // namespace chorus::service
