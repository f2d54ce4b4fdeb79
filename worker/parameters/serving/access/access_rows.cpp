#include "worker/parameters/serving/access/access.hpp"
#include "worker/parameters/serving/access/push_fields.hpp"
#include "worker/parameters/shard/step.hpp"

namespace chorus::parameters {

namespace asio = boost::asio;

asio::awaitable<http::Checked<Access::Outcome>> Access::push_rows(PlacementPtr placement, Push push,
                                                                  http::TimePoint deadline) {
  auto const width = placement->row_elements;
  auto const row_bytes = width * element_bytes(push.dtype);
  std::span const numbers(reinterpret_cast<std::uint64_t const*>(push.data->data()), push.rows);
  if (auto problem = co_await refuse(placement, push)) co_return std::move(*problem);
  // Every shard gets every sequence number, even without a row, because it expects the numbers in order.
  Make make = [push, numbers, width, row_bytes](api::ParameterEndpoint const& owner) -> std::optional<http::Call> {
    auto const part = part_of(numbers, {owner.elements[0] / width, owner.elements[1] / width});
    http::Call call;
    call.method = http::Method::post;
    call.url = "/rows/gradient?";
    write_push(push, call.fields);
    call.fields.set("Chorus-Rows", std::to_string(part.count));
    call.fields.set("Content-Type", "application/octet-stream");
    call.payload = std::as_bytes(numbers.subspan(part.first, part.count));
    call.payload_rest = gradient_of(push).bytes.subspan(part.first * row_bytes, part.count * row_bytes);
    return call;
  };
  co_return co_await ask_all(std::move(placement), std::move(make), deadline);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::push_rows_of(PlacementPtr placement, std::uint32_t shard,
                                                                     Push push, http::TimePoint deadline) {
  Make make = [push = std::move(push)](api::ParameterEndpoint const&) -> std::optional<http::Call> {
    http::Call call;
    call.method = http::Method::post;
    call.url = "/rows/gradient?";
    write_push(push, call.fields);
    call.fields.set("Content-Type", "application/octet-stream");
    call.payload = push.data->bytes();
    return call;
  };
  return ask_all(std::move(placement), std::move(make), deadline, shard);
}

asio::awaitable<http::Checked<Access::Outcome>> Access::pull_rows(PlacementPtr placement, ReadConstraints constraints,
                                                                  std::shared_ptr<void const> numbers_owner,
                                                                  std::span<std::uint64_t const> numbers, Room into,
                                                                  http::TimePoint deadline) {
  auto const width = placement->row_elements;
  auto const row_bytes = width * element_bytes(placement->dtype);
  Make make = [=, constraints = std::move(constraints), owner_of_numbers = std::move(numbers_owner)](
                  api::ParameterEndpoint const& owner) -> std::optional<http::Call> {
    auto const part = part_of(numbers, {owner.elements[0] / width, owner.elements[1] / width});
    if (part.count == 0) return std::nullopt;
    http::Call call;
    call.method = http::Method::post;
    call.url = "/rows?" + constraints.query();
    if (constraints.clock) call.fields.set("Chorus-Clock", std::to_string(*constraints.clock));
    call.fields.set("Chorus-Rows", std::to_string(part.count));
    call.fields.set("Content-Type", "application/octet-stream");
    call.payload = std::as_bytes(numbers.subspan(part.first, part.count));
    call.destination = into.bytes.subspan(part.first * row_bytes, part.count * row_bytes);
    return call;
  };
  co_return co_await ask_all(std::move(placement), std::move(make), deadline);
}

}  // namespace chorus::parameters
