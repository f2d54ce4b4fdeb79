// The regions of clients' shared memory that are registered at this worker, and the tensors that are placed there.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "http/api/client_memory.hpp"
#include "http/problem.hpp"
#include "worker/memory/client_region.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// On the control thread. The store outlives it; tensors keep the regions that they lie in.
class ClientMemory {
 public:
  // Each region is guarded against truncation, and the process can guard so many mappings.
  static constexpr std::size_t max_regions = 1024;

  ClientMemory(bool is_allowed, tensors::Store const& store) : is_allowed_(is_allowed), store_(store) {}

  // Problem forbidden, with the flag, unless the worker was started with it.
  [[nodiscard]] std::optional<http::Problem> refusal() const;

  struct Registered {
    api::Region region;
    bool is_new = false;
  };
  // The same part of the same object again is what is there already; another one takes its place if nothing uses it.
  // Problems: invalid_field at /key, /offset, /bytes; region_in_use; unavailable.
  [[nodiscard]] http::Checked<Registered> put(std::string const& name, api::RegionRequest const& request);
  [[nodiscard]] http::Checked<api::Region> get(std::string const& name) const;  // unknown_region
  [[nodiscard]] std::vector<api::Region> list(std::string const& after, std::size_t limit) const;
  // Problems: unknown_region, region_in_use while tensors lie there or are being sent from there.
  [[nodiscard]] std::optional<http::Problem> erase(std::string const& name);

  // Memory for a tensor. Problems: unknown_region, region_damaged, invalid_field at /shm/offset.
  [[nodiscard]] http::Checked<std::shared_ptr<tensors::Block>> block(api::Place const& place, std::uint64_t size_bytes,
                                                                     Dtype dtype) const;

 private:
  using RegionPtr = std::shared_ptr<memory::ClientRegion const>;
  // Names of tensors by where they lie.
  using Residents = std::map<memory::ClientRegion const*, std::vector<std::string>>;
  [[nodiscard]] Residents residents() const;
  [[nodiscard]] static api::Region describe(memory::ClientRegion const& region, Residents const& residents);
  [[nodiscard]] http::Problem in_use(memory::ClientRegion const& region) const;

  bool const is_allowed_;
  tensors::Store const& store_;
  std::map<std::string, RegionPtr> regions_;
};

}  // namespace chorus::service
