// Moves bytes of tensors between sockets and GPUs through slots of pinned memory. The control thread never waits for a
// device, and no slot waits for a slow client: bytes that the client has yet to send or to take are in ordinary memory.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "http/message/message.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/service/requests/helper.hpp"
#include "worker/service/tensors/digest.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// Memory for a tensor on the GPU. The first call makes the helper allocate the GPU's arena. Errors: see acquire_on. GPU
// and helper outlive the call; the GPU also outlives the block.
[[nodiscard]] boost::asio::awaitable<Result<std::shared_ptr<tensors::Block>>> acquire_on_gpu(devices::GpuUnit& gpu,
                                                                                             std::uint64_t bytes,
                                                                                             Helper& helper);

// Fills the block, which is on a GPU, from the body; returns its digest in base64 if one is wanted. Takes memory for
// one piece from the pool. Problems: those of Body::read_exactly; unavailable if that memory or, for two seconds, all
// pinned memory is in use; device_failed.
[[nodiscard]] boost::asio::awaitable<http::Checked<std::string>> receive_on_gpu(http::Body& body,
                                                                                std::shared_ptr<tensors::Block> block,
                                                                                std::optional<DigestAlgorithm> digest,
                                                                                tensors::Pool& pool, Helper& helper);

// Streams these bytes of the block, which is on a GPU, two pieces at a time. Resumes when the first ones have arrived.
// If the device fails later, the stream ends early and the log says why. Takes memory for the pieces from the pool;
// pool and helper outlive the stream. Problems: see receive_on_gpu.
[[nodiscard]] boost::asio::awaitable<http::Checked<http::Stream>> stream_from_gpu(
    std::shared_ptr<tensors::Block const> block, std::span<std::byte const> bytes, tensors::Pool& pool, Helper& helper);

// Digest of a block in any memory. Waits for the device, so call on a helper thread. Errors: GpuErrc.
[[nodiscard]] Result<Digest> digest_of(tensors::Block const& block, DigestAlgorithm algorithm);

}  // namespace chorus::service
