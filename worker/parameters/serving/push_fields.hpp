// A push as header fields: from clients to owners, and from owners to backups.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/message.hpp"
#include "worker/parameters/shard/push.hpp"

namespace chorus::parameters {

// Chorus-Client, Chorus-Incarnation, Chorus-Sequence, Chorus-Clock, Chorus-Rows, Chorus-Gradient-Norm, Tensor-Dtype:
// everything of a push but its data. A dtype that is not given is `dtype`. Problems: bad_request naming the field;
// unsupported for another dtype than `dtype` and, of gradients of f16 and bf16, f32.
[[nodiscard]] http::Checked<Push> read_push(http::Fields const& fields, PushKind kind, Dtype dtype);
void write_push(Push const& push, http::Fields& fields);

// A header field that is a number without sign in decimal digits. Problem bad_request; also for one that is given
// twice.
[[nodiscard]] http::Checked<std::optional<std::uint64_t>> number_field(http::Fields const& fields,
                                                                       std::string_view name);

// A push of kind clients: its data is their names, each on a line. Problem bad_request for what is no name.
[[nodiscard]] http::Checked<Push> clients_push(std::string_view lines, Dtype dtype);
[[nodiscard]] std::string client_lines(std::vector<std::string> const& clients);

[[nodiscard]] std::optional<PushKind> parse_push_kind(std::string_view text);
[[nodiscard]] std::string_view name(PushKind kind);

// [A-Za-z0-9._-]{1,64}
[[nodiscard]] bool is_client_name(std::string_view name);

}  // namespace chorus::parameters
