// CRC32C, the checksum of iSCSI, SCTP and ext4: the Castagnoli polynomial 0x1edc6f41, lowest bit first, initial value
// and final XOR of all ones. It detects every change within 32 consecutive bits, and misses one in 2^32 of all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace chorus::http {

// Extends a checksum: returns that of the bytes that `crc` covers (0: no bytes) followed by `bytes`. Uses the
// processor's instruction if there is one.
[[nodiscard]] std::uint32_t crc32c(std::uint32_t crc, std::span<std::byte const> bytes);

// The same by tables, on every processor.
[[nodiscard]] std::uint32_t crc32c_by_tables(std::uint32_t crc, std::span<std::byte const> bytes);

}  // namespace chorus::http
