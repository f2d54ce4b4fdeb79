#include "library/arguments.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "collectives/core/nearest_name.hpp"

namespace chorus::library {
namespace {

// Sizes in the first version of each struct: 0.2.
constexpr std::size_t first_worker_options = 232;
constexpr std::size_t first_collective_options = 88;
constexpr std::size_t first_message_options = 24;
constexpr std::size_t first_group_options = 40;
constexpr std::size_t first_coordinator_options = 48;
static_assert(sizeof(chorus_worker_options_t) >= first_worker_options);
static_assert(sizeof(chorus_collective_options_t) >= first_collective_options);
static_assert(sizeof(chorus_coordinator_options_t) >= first_coordinator_options);
static_assert(sizeof(chorus_group_options_t) >= first_group_options);
static_assert(sizeof(chorus_message_options_t) >= first_message_options && sizeof(chorus_received_t) == 16);

Error bad(std::string text) { return {WorkerErrc::bad_argument, std::move(text)}; }

std::string text_of(char const* text) { return text != nullptr ? text : ""; }

// Names with commas between them.
std::optional<std::vector<std::string>> names_in(char const* text) {
  if (text == nullptr) return std::nullopt;
  std::vector<std::string> names(1);
  for (; *text != '\0'; ++text) {
    if (*text == ',')
      names.emplace_back();
    else
      names.back() += *text;
  }
  return names;
}

void set(std::string& to, char const* text) {
  if (text != nullptr) to = text;
}

// -1 is none, 0 the default that `to` has.
template <class Duration>
Status set(Duration& to, std::int64_t count, char const* name) {
  constexpr std::int64_t most = 1'000'000'000;
  if (count < -1 || count > most)
    return bad(std::string(name) + " is " + std::to_string(count) + ", not -1 to " + std::to_string(most));
  if (count != 0) to = Duration(std::max<std::int64_t>(count, 0));
  return ok();
}

// Bytes of a list that C hands over as a pointer and a length.
template <class T>
Result<std::span<T const>> list_of(T const* first, std::size_t length, std::string const& name) {
  if (first == nullptr && length != 0) return bad(name + " is NULL, and " + name + "_length " + std::to_string(length));
  return std::span<T const>(first, length);
}

Status set(std::vector<std::string>& to, char const* const* texts, std::size_t length, char const* name) {
  auto const list = list_of(texts, length, name);
  if (list.has_error()) return list.error();
  for (auto const* const text : *list) {
    if (text == nullptr) return bad(std::string(name) + " has a NULL in it");
    to.emplace_back(text);
  }
  return ok();
}

// "0 or 1" as C says it.
Status set(bool& to, std::int32_t value, bool inverted, char const* name) {
  if (value != 0 && value != 1) return bad(std::string(name) + " is " + std::to_string(value) + ", not 0 or 1");
  to = (value == 1) != inverted;
  return ok();
}

Result<std::size_t> bytes_of(void const* data, std::uint64_t elements, chorus_dtype_t dtype, std::uint32_t reserved,
                             std::string const& name) {
  if (dtype < 0 || dtype > CHORUS_U8) return bad(name + ": " + std::to_string(dtype) + " is no dtype of chorus.h");
  if (reserved != 0) return bad(name + ": reserved is " + std::to_string(reserved) + ", not 0");
  if (data == nullptr && elements != 0)
    return bad(name + ": data is NULL, and there are " + std::to_string(elements) + " elements");
  auto const size = element_bytes(static_cast<Dtype>(dtype));
  if (elements > std::numeric_limits<std::ptrdiff_t>::max() / size)
    return bad(name + ": " + std::to_string(elements) + " elements are more than there are addresses");
  return static_cast<std::size_t>(elements) * size;
}

// `name` is that of one of them.
template <class View, class Tensor>
Result<std::vector<View>> views_of(Tensor const* tensors, std::size_t count, std::string const& name) {
  if (tensors == nullptr && count != 0) return bad(name + "s is NULL, and count " + std::to_string(count));
  std::vector<View> views;
  for (std::size_t i = 0; i < count; ++i) {
    auto const view = to_view(tensors + i, (name + " " + std::to_string(i)).c_str());
    if (view.has_error()) return view.error();
    views.push_back(*view);
  }
  return views;
}

static_assert(CHORUS_F64 == static_cast<int>(Dtype::f64) && CHORUS_F32 == static_cast<int>(Dtype::f32) &&
              CHORUS_F16 == static_cast<int>(Dtype::f16) && CHORUS_BF16 == static_cast<int>(Dtype::bf16) &&
              CHORUS_I64 == static_cast<int>(Dtype::i64) && CHORUS_I32 == static_cast<int>(Dtype::i32) &&
              CHORUS_I16 == static_cast<int>(Dtype::i16) && CHORUS_I8 == static_cast<int>(Dtype::i8) &&
              CHORUS_U64 == static_cast<int>(Dtype::u64) && CHORUS_U32 == static_cast<int>(Dtype::u32) &&
              CHORUS_U16 == static_cast<int>(Dtype::u16) && CHORUS_U8 == static_cast<int>(Dtype::u8));
static_assert(CHORUS_SUM == static_cast<int>(ReduceOp::sum) && CHORUS_AVG == static_cast<int>(ReduceOp::avg) &&
              CHORUS_MIN == static_cast<int>(ReduceOp::min) && CHORUS_MAX == static_cast<int>(ReduceOp::max) &&
              CHORUS_PROD == static_cast<int>(ReduceOp::prod) && CHORUS_BAND == static_cast<int>(ReduceOp::band) &&
              CHORUS_BOR == static_cast<int>(ReduceOp::bor) && CHORUS_BXOR == static_cast<int>(ReduceOp::bxor));

}  // namespace

Result<WorkerOptions> to_worker_options(chorus_worker_options_t const* options) {
  auto const given = read_sized(options, first_worker_options, "chorus_worker_options_t");
  if (given.has_error()) return given.error();
  WorkerOptions to;
  to.coordinator = text_of(given->coordinator);
  set(to.host, given->host);
  to.port = given->port;
  to.advertise = text_of(given->advertise);
  to.id = text_of(given->id);
  to.locality = {text_of(given->region), text_of(given->zone), text_of(given->rack), text_of(given->locality_host)};
  if (given->tensor_limit_bytes != 0) to.tensor_limit_bytes = given->tensor_limit_bytes;
  to.memory_limit_bytes = given->memory_limit_bytes;
  set(to.link_checksum, given->link_checksum);
  if (given->connections != 0) to.connections = given->connections;
  set(to.log_level, given->log_level);
  auto& security = to.security;
  security.auth_tokens = text_of(given->auth_tokens);
  security.token_file = text_of(given->token_file);
  security.audit_log = text_of(given->audit_log);
  security.tls_certificate = text_of(given->tls_certificate);
  security.tls_key = text_of(given->tls_key);
  security.tls_authorities = text_of(given->tls_authorities);
  if (given->rate_limit != 0) security.rate_limit = given->rate_limit;
  for (auto const part : given->reserved)
    if (part != 0) return bad("chorus_worker_options_t: reserved is not 0");
  for (auto const& status :
       {set(to.spin, given->spin_us, "spin_us"), set(to.drain_timeout, given->drain_timeout_ms, "drain_timeout_ms"),
        set(to.shares_memory, given->private_memory, true, "private_memory"),
        set(security.insecure_no_auth, given->insecure_no_auth, false, "insecure_no_auth"),
        set(security.tls_requires_client_certificate, given->tls_requires_client_certificate, false,
            "tls_requires_client_certificate"),
        set(security.allowed_hosts, given->allowed_hosts, given->allowed_hosts_length, "allowed_hosts"),
        set(security.cors_origins, given->cors_origins, given->cors_origins_length, "cors_origins")})
    if (status.has_error()) return status.error();
  return to;
}

Result<CollectiveOptions> to_options(chorus_collective_options_t const* options) {
  CollectiveOptions to;
  if (options == nullptr) return to;
  auto const given = read_sized(options, first_collective_options, "chorus_collective_options_t");
  if (given.has_error()) return given.error();
  if (given->reduce < 0 || given->reduce > CHORUS_BXOR)
    return bad("reduce: " + std::to_string(given->reduce) + " is no reduction of chorus.h");
  if (given->reserved != 0) return bad("chorus_collective_options_t: reserved is not 0");
  to.reduce = static_cast<ReduceOp>(given->reduce);
  to.root = given->root;
  set(to.algorithm, given->algorithm);
  if (given->arity != 0) to.arity = given->arity;
  auto const shape = list_of(given->algorithm_shape, given->algorithm_shape_length, "algorithm_shape");
  if (shape.has_error()) return shape.error();
  to.algorithm_shape.assign(shape->begin(), shape->end());
  auto const counts = list_of(given->counts, given->counts_length, "counts");
  if (counts.has_error()) return counts.error();
  to.counts.assign(counts->begin(), counts->end());
  auto const receive_counts = list_of(given->receive_counts, given->receive_counts_length, "receive_counts");
  if (receive_counts.has_error()) return receive_counts.error();
  to.receive_counts.assign(receive_counts->begin(), receive_counts->end());
  if (given->timeout_ms != 0) to.timeout = std::chrono::milliseconds(given->timeout_ms);
  if (given->compression == nullptr && given->between != nullptr) return bad("between: there is no compression");
  if (given->compression == nullptr && given->allow != nullptr) return bad("allow: there is no compression");
  set(to.error_feedback, given->error_feedback);
  if (given->compression == nullptr) return to;
  auto const between = given->between != nullptr ? std::optional<std::string>(given->between) : std::nullopt;
  auto const compression = parse_compression(given->compression, between, names_in(given->allow));
  if (compression.has_error()) return bad("compression: " + compression.error().detail);
  to.compression = *compression;
  return to;
}

Result<MessageOptions> to_options(chorus_message_options_t const* options) {
  MessageOptions to;
  if (options == nullptr) return to;
  auto const given = read_sized(options, first_message_options, "chorus_message_options_t");
  if (given.has_error()) return given.error();
  if (given->reserved != 0) return bad("chorus_message_options_t: reserved is not 0");
  to.tag = given->tag;
  if (given->timeout_ms != 0) to.timeout = std::chrono::milliseconds(given->timeout_ms);
  return to;
}

Result<GroupOptions> to_options(chorus_group_options_t const* options) {
  if (options == nullptr) return bad("options is NULL: a group needs members");
  auto const given = read_sized(options, first_group_options, "chorus_group_options_t");
  if (given.has_error()) return given.error();
  if (given->reserved != 0) return bad("chorus_group_options_t: reserved is not 0");
  GroupOptions to;
  if (auto status = set(to.workers, given->workers, given->workers_length, "workers"); status.has_error())
    return status.error();
  to.size = given->ranks;
  set(to.order, given->order);
  return to;
}

Result<CoordinatorOptions> to_options(chorus_coordinator_options_t const* options) {
  auto const given = read_sized(options, first_coordinator_options, "chorus_coordinator_options_t");
  if (given.has_error()) return given.error();
  for (auto const part : given->reserved)
    if (part != 0) return bad("chorus_coordinator_options_t: reserved is not 0");
  CoordinatorOptions to;
  set(to.program, given->program);
  set(to.host, given->host);
  to.port = given->port;
  if (auto status = set(to.arguments, given->arguments, given->arguments_length, "arguments"); status.has_error())
    return status.error();
  return to;
}

Result<std::uint32_t> to_source(std::int64_t source) {
  if (source == CHORUS_ANY_SOURCE) return any_source;
  if (source < 0 || source >= any_source) return bad("source is " + std::to_string(source) + ", which is no rank");
  return static_cast<std::uint32_t>(source);
}

Result<TensorView> to_view(chorus_tensor_t const* tensor, char const* name) {
  if (tensor == nullptr) return TensorView();
  auto const bytes = bytes_of(tensor->data, tensor->elements, tensor->dtype, tensor->reserved, name);
  if (bytes.has_error()) return bytes.error();
  std::span<std::byte> const memory(static_cast<std::byte*>(tensor->data), *bytes);
  return TensorView(memory, static_cast<Dtype>(tensor->dtype));
}

Result<ConstTensorView> to_view(chorus_const_tensor_t const* tensor, char const* name) {
  if (tensor == nullptr) return ConstTensorView();
  auto const bytes = bytes_of(tensor->data, tensor->elements, tensor->dtype, tensor->reserved, name);
  if (bytes.has_error()) return bytes.error();
  std::span<std::byte const> const memory(static_cast<std::byte const*>(tensor->data), *bytes);
  return ConstTensorView(memory, static_cast<Dtype>(tensor->dtype));
}

Result<std::vector<TensorView>> to_views(chorus_tensor_t const* tensors, std::size_t count, char const* name) {
  return views_of<TensorView>(tensors, count, name);
}

Result<std::vector<ConstTensorView>> to_views(chorus_const_tensor_t const* tensors, std::size_t count,
                                              char const* name) {
  return views_of<ConstTensorView>(tensors, count, name);
}

Result<std::chrono::steady_clock::time_point> to_deadline(std::int64_t timeout_ms) {
  if (timeout_ms < 0) return bad("timeout_ms is " + std::to_string(timeout_ms) + ", not 0 or more");
  // More is never meant, and would not fit into a point of time.
  constexpr std::chrono::milliseconds most = std::chrono::hours(24 * 365);
  return std::chrono::steady_clock::now() + std::min(std::chrono::milliseconds(timeout_ms), most);
}

}  // namespace chorus::library
