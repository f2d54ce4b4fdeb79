// PUT of tensors: their bytes or, as JSON, their place in a client's shared memory.
//
// All refusals come before the body is read. The body goes straight into the block of the new tensor, whose memory is
// allocated as bytes arrive; for a GPU, through pinned memory. A tensor changes only when all of it has arrived and
// matches its digest.
#pragma once

#include "http/routing/router.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/service/memory/client_memory.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/service/requests/identity.hpp"
#include "worker/service/tensors/digest.hpp"
#include "worker/tensors/memory.hpp"
#include "worker/tensors/store.hpp"

namespace chorus::service {

// Used on the control thread only. The arguments outlive the object, which outlives the server's stop().
class TensorUpload {
 public:
  TensorUpload(tensors::Store& store, tensors::Pool& pool, devices::Gpus const& gpus, ClientMemory const& clients,
               Helper& helper, Identity const& identity, std::uint64_t tensor_limit_bytes)
      : store_(store),
        pool_(pool),
        gpus_(gpus),
        clients_(clients),
        helper_(helper),
        identity_(identity),
        tensor_limit_bytes_(tensor_limit_bytes) {}

  void add_to(http::Router& router);

 private:
  boost::asio::awaitable<http::Response> put(http::Request const& request, http::Body& body);
  boost::asio::awaitable<http::Response> upload(http::Request const& request, http::Body& body, std::string name);
  struct Filled;
  [[nodiscard]] http::Checked<devices::GpuUnit*> device(http::Fields const& fields) const;
  boost::asio::awaitable<http::Checked<Filled>> fill(http::Body& body, std::uint64_t bytes, devices::GpuUnit* gpu,
                                                     std::optional<DigestAlgorithm> wanted);
  boost::asio::awaitable<http::Response> place(http::Request const& request, http::Body& body, std::string name);
  [[nodiscard]] http::Response store(tensors::Tensor tensor, std::optional<std::uint64_t> expected);

  tensors::Store& store_;
  tensors::Pool& pool_;
  devices::Gpus const& gpus_;
  ClientMemory const& clients_;
  Helper& helper_;
  Identity const& identity_;
  std::uint64_t const tensor_limit_bytes_;
};

}  // namespace chorus::service
