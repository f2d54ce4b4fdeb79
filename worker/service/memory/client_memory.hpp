// Regions of clients' memory that are registered at this worker, and the tensors in them.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http/api/tensors/client_memory.hpp"
#include "http/json/problem.hpp"
#include "worker/memory/regions/client_region.hpp"
#include "worker/service/memory/gpu_region.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// Used on the control thread only. Store and GPUs outlive the object; tensors keep their regions alive. The helper,
// which maps and unmaps regions, outlives its calls.
class ClientMemory {
 public:
  // Each region in host memory is guarded against truncation, and the number of guards per process is limited.
  static constexpr std::size_t max_regions = 1024;

  ClientMemory(bool is_allowed, tensors::Store const& store, devices::Gpus const& gpus, Helper& helper)
      : is_allowed_(is_allowed), store_(store), gpus_(gpus), helper_(helper) {}

  // Problem forbidden, naming the flag, unless client memory is allowed.
  [[nodiscard]] std::optional<http::Problem> refusal() const;

  template <class Region>
  struct Registered {
    Region region;
    bool is_new = false;
  };
  // Registers a region. The same part of the same object again returns the existing region; another object replaces it
  // if no tensor uses it. Names are unique over both kinds. Problems: invalid_field at /key, /offset, /bytes, /handle,
  // /device; region_in_use; unavailable; device_failed.
  boost::asio::awaitable<http::Checked<Registered<api::Region>>> put(std::string name, api::RegionRequest request);
  boost::asio::awaitable<http::Checked<Registered<api::GpuRegion>>> put(std::string name,
                                                                        api::GpuRegionRequest request);
  [[nodiscard]] http::Checked<api::Region> get(std::string const& name) const;            // unknown_region
  [[nodiscard]] http::Checked<api::GpuRegion> get_on_gpu(std::string const& name) const;  // unknown_region
  [[nodiscard]] std::vector<api::Region> list(std::string const& after, std::size_t limit) const;
  [[nodiscard]] std::vector<api::GpuRegion> list_on_gpus(std::string const& after, std::size_t limit) const;
  // Problems: unknown_region; region_in_use while tensors lie in the region or are being sent from it.
  [[nodiscard]] std::optional<http::Problem> erase(std::string const& name);
  [[nodiscard]] std::optional<http::Problem> erase_on_gpu(std::string const& name);

  // Memory of a tensor in a region. Problems: unknown_region, region_damaged, invalid_field at /shm/offset.
  [[nodiscard]] http::Checked<std::shared_ptr<tensors::Block>> block(api::Place const& place, std::uint64_t size_bytes,
                                                                     Dtype dtype) const;

 private:
  template <class Kept>
  using Regions = std::map<std::string, std::shared_ptr<Kept const>>;
  // Names of tensors by region.
  using Residents = std::map<memory::Region const*, std::vector<std::string>>;
  [[nodiscard]] Residents residents() const;
  [[nodiscard]] static api::Region describe(memory::ClientRegion const& region, Residents const& residents);
  [[nodiscard]] static api::GpuRegion describe(GpuRegion const& region, Residents const& residents);
  [[nodiscard]] http::Problem in_use(memory::Region const& region) const;
  [[nodiscard]] std::optional<http::Problem> check_name(std::string const& name, bool is_taken) const;
  template <class Kept>
  void let_go(std::shared_ptr<Kept const> region);
  // The caller decides `is_same`.
  template <class Kept>
  [[nodiscard]] http::Checked<bool> replace(Regions<Kept>& regions, std::string const& name,
                                            std::shared_ptr<Kept const> region, bool is_same);
  template <class Kept>
  [[nodiscard]] std::optional<http::Problem> erase(Regions<Kept>& regions, std::string const& name);

  bool const is_allowed_;
  tensors::Store const& store_;
  devices::Gpus const& gpus_;
  Helper& helper_;
  Regions<memory::ClientRegion> regions_;
  Regions<GpuRegion> gpu_regions_;
};

}  // namespace chorus::service
