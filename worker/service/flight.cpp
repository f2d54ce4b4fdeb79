#include "worker/service/flight.hpp"

#include <boost/json.hpp>

#include "http/api/membership.hpp"

namespace chorus::service {
namespace {

boost::json::object to_object(Flight const& flight) {
  return {{"run", api::to_hex(flight.run)},
          {"group", flight.group},
          {"epoch", flight.epoch},
          {"op", flight.op},
          {"algorithm", flight.algorithm},
          {"rank", flight.rank},
          {"ranks", flight.ranks},
          {"tensor", flight.tensor},
          {"dtype", flight.dtype},
          {"elements", flight.elements},
          {"state", flight.state},
          {"error", flight.error},
          {"started_us", flight.started_us},
          {"seconds", flight.seconds},
          {"wait_seconds", flight.wait_seconds},
          {"bytes_sent", flight.bytes_sent},
          {"bytes_received", flight.bytes_received},
          {"steps", flight.steps}};
}

}  // namespace

void FlightRecorder::add(Flight flight) {
  if (flights_.size() == capacity) flights_.pop_back();
  flights_.push_front(std::move(flight));
}

std::string FlightRecorder::to_json(std::size_t last) const {
  boost::json::array items;
  for (auto const& flight : flights_) {
    if (items.size() == last) break;
    items.push_back(to_object(flight));
  }
  return boost::json::serialize(boost::json::object{{"items", std::move(items)}});
}

void FlightRecorder::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/flight", http::Access::read,
             [this](http::Request const& request, http::Body&) { return list(request); });
}

boost::asio::awaitable<http::Response> FlightRecorder::list(http::Request const& request) {
  auto const last = request.query_number("last", capacity);
  if (!last) co_return last.error();
  co_return http::Response::json(200, to_json(last->value_or(capacity)));
}

}  // namespace chorus::service
