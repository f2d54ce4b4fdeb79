// Payloads of ask and tell: signs of life on a run's links. A rank asks the peers that it waits for, and they answer
// what they wait for themselves. So a silent rank can be distinguished from one that only waits for others. See
// docs/reference/wire.md.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "collectives/core/result.hpp"

namespace chorus::links {

struct Ask {
  std::uint64_t token = 0;  // of the run; an ask with another token gets no answer

  friend bool operator==(Ask const&, Ask const&) = default;
};
static_assert(sizeof(Ask) == 8);

// State of the asked rank in the run.
enum class Doing : std::uint8_t { not_called = 1, running, ended };
// Why the asked rank suspects another rank, from harmless to grave. `nobody`: it does not wait.
enum class Suspicion : std::uint8_t { nobody = 0, slow, not_called, silent };

struct TellHead {
  std::uint64_t token = 0;
  std::uint64_t since_us = 0;  // how long the suspicion has held
  std::uint32_t suspect = 0;   // rank
  Doing doing = Doing::running;
  Suspicion suspicion = Suspicion::nobody;
  std::uint16_t zero = 0;

  friend bool operator==(TellHead const&, TellHead const&) = default;
};
static_assert(sizeof(TellHead) == 24 && alignof(TellHead) == 8);
static_assert(offsetof(TellHead, since_us) == 8 && offsetof(TellHead, suspect) == 16);
static_assert(offsetof(TellHead, doing) == 20 && offsetof(TellHead, suspicion) == 21 && offsetof(TellHead, zero) == 22);
static_assert(std::is_trivially_copyable_v<TellHead> && std::has_unique_object_representations_v<TellHead>);

struct Tell {
  TellHead head;
  std::string text;  // of the rank that waits for the suspect, with the step; the first tell_text_max bytes are sent

  friend bool operator==(Tell const&, Tell const&) = default;
};

inline constexpr std::size_t tell_text_max = 256;
inline constexpr std::size_t tell_bytes_max = sizeof(TellHead) + tell_text_max;

// Return the number of bytes used; `to` has tell_bytes_max bytes.
[[nodiscard]] std::uint32_t encode(Ask const& ask, std::span<std::byte> to);
[[nodiscard]] std::uint32_t encode(Tell const& tell, std::span<std::byte> to);

// Errors: LinkErrc::bad_frame. Text is made printable, because it goes into logs and answers.
[[nodiscard]] Result<Ask> decode_ask(std::span<std::byte const> payload);
[[nodiscard]] Result<Tell> decode_tell(std::span<std::byte const> payload);

}  // namespace chorus::links
