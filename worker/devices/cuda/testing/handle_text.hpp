// Encodes a handle as clients send it over REST.
#pragma once

#include <openssl/evp.h>

#include <string>

#include "worker/devices/cuda/gpu.hpp"

namespace chorus::devices::testing {

inline std::string in_base64(IpcHandle const& handle) {
  std::string text(4 * ((handle.size() + 2) / 3) + 1, '\0');
  text.resize(static_cast<std::size_t>(EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                                       reinterpret_cast<unsigned char const*>(handle.data()),
                                                       static_cast<int>(handle.size()))));
  return text;
}

}  // namespace chorus::devices::testing
