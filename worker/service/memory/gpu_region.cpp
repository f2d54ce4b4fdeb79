#include "worker/service/memory/gpu_region.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstring>
#include <limits>

namespace chorus::service {

std::optional<devices::IpcHandle> parse_handle(std::string_view base64) {
  devices::IpcHandle handle;
  constexpr auto bytes = std::tuple_size_v<devices::IpcHandle>;
  constexpr auto length = (bytes + 2) / 3 * 4;
  constexpr auto padding = (3 - bytes % 3) % 3;
  if (base64.size() != length || base64.find('=') != length - padding) return std::nullopt;
  std::array<unsigned char, length / 4 * 3> decoded{};
  auto const* const text = reinterpret_cast<unsigned char const*>(base64.data());
  if (EVP_DecodeBlock(decoded.data(), text, static_cast<int>(length)) != static_cast<int>(decoded.size()))
    return std::nullopt;
  std::memcpy(handle.data(), decoded.data(), bytes);
  return handle;
}

Result<std::shared_ptr<GpuRegion const>> GpuRegion::open(std::string name, devices::GpuUnit& gpu, Part part) {
  if (auto const why = gpu.lost()) return Error(devices::GpuErrc::lost, *why);
  if (part.bytes > std::numeric_limits<std::int64_t>::max() - part.offset ||
      part.offset > std::numeric_limits<std::int64_t>::max())
    return Error(devices::GpuErrc::bad_handle, "no memory has so many bytes");
  auto const opened = gpu.gpu().open(part.handle, part.offset + part.bytes);
  if (!opened) {
    gpu.saw(opened.error());
    return opened.error();
  }
  return std::make_shared<GpuRegion const>(std::move(name), gpu, part, *opened);
}

}  // namespace chorus::service
