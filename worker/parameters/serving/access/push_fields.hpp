// Header fields of pushes, from clients to owners and from owners to backups.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message/message.hpp"
#include "worker/parameters/shard/pushes/push.hpp"

namespace chorus::parameters {

// Read and write a push without its data: Chorus-Client, Chorus-Incarnation, Chorus-Sequence, Chorus-Clock,
// Chorus-Rows, Chorus-Gradient-Norm, Tensor-Dtype (default: `dtype`). Problems: bad_request naming the field;
// unsupported for any dtype but `dtype` and, for gradients of f16 and bf16, f32.
[[nodiscard]] http::Checked<Push> read_push(http::Fields const& fields, PushKind kind, Dtype dtype);
void write_push(Push const& push, http::Fields& fields);

// Reads a header field that is an unsigned decimal number. Problem: bad_request, also for a repeated field.
[[nodiscard]] http::Checked<std::optional<std::uint64_t>> number_field(http::Fields const& fields,
                                                                       std::string_view name);

// Read and write the data of a push of kind clients: one name on each line. Problem: bad_request for an invalid name.
[[nodiscard]] http::Checked<Push> clients_push(std::string_view lines, Dtype dtype);
[[nodiscard]] std::string client_lines(std::vector<std::string> const& clients);

[[nodiscard]] std::optional<PushKind> parse_push_kind(std::string_view text);
[[nodiscard]] std::string_view name(PushKind kind);

// Client names match [A-Za-z0-9._-]{1,64}.
[[nodiscard]] bool is_client_name(std::string_view name);

}  // namespace chorus::parameters
