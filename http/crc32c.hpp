// CRC32C, the checksum of iSCSI, SCTP and ext4: the Castagnoli polynomial 0x1edc6f41, bits from the lowest, begun with
// ones and inverted at the end. It finds every change within 32 bits in a row, and all others but one in 2^32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace chorus::http {

// Of what `crc` is of, 0 for nothing, and `bytes` behind it. By the processor's instruction where it has one.
[[nodiscard]] std::uint32_t crc32c(std::uint32_t crc, std::span<std::byte const> bytes);

// The same, by tables on every processor.
[[nodiscard]] std::uint32_t crc32c_by_tables(std::uint32_t crc, std::span<std::byte const> bytes);

}  // namespace chorus::http
