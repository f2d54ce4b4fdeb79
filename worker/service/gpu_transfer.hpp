// Bytes of tensors on their way between sockets and GPUs, through slots of pinned memory: the control thread never
// waits for a device, and no slot waits for a client, however slow it is. What the client has yet to send or to take
// is in ordinary memory.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "http/message.hpp"
#include "worker/devices/cuda/gpus.hpp"
#include "worker/service/digest.hpp"
#include "worker/service/helper.hpp"
#include "worker/tensors/memory.hpp"

namespace chorus::service {

// Memory for a tensor there. The first one takes the GPU's arena, which the helper does. Problems: unavailable with the
// driver's words or the arena's figures; device_failed. GPU and helper outlive the call, the GPU also the block.
[[nodiscard]] boost::asio::awaitable<http::Checked<std::shared_ptr<tensors::Block>>> acquire_on_gpu(
    devices::GpuUnit& gpu, std::uint64_t bytes, Helper& helper);

// Fills the block, which lies on a GPU, with what the body has; gives the digest of it, in base64, if one is wanted.
// The pool has the memory for a piece of it. Problems: those of Body::read_exactly; unavailable where that memory, or
// for two seconds all pinned memory, is in use; device_failed.
[[nodiscard]] boost::asio::awaitable<http::Checked<std::string>> receive_on_gpu(http::Body& body,
                                                                                std::shared_ptr<tensors::Block> block,
                                                                                std::optional<DigestAlgorithm> digest,
                                                                                tensors::Pool& pool, Helper& helper);

// These bytes of the block, which lies on a GPU, as they are asked for, two pieces at a time. Resumes when the first
// ones are there. Where the device fails later, the stream ends too soon, and the log says why. The pool, which has the
// memory for these pieces, outlives the stream. Problems: as receive_on_gpu.
[[nodiscard]] boost::asio::awaitable<http::Checked<http::Stream>> stream_from_gpu(
    std::shared_ptr<tensors::Block const> block, std::span<std::byte const> bytes, tensors::Pool& pool);

// Of a block wherever it lies; waits for the device, on the helper thread. Errors: GpuErrc.
[[nodiscard]] Result<Digest> digest_of(tensors::Block const& block, DigestAlgorithm algorithm);

}  // namespace chorus::service
