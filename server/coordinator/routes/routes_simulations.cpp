#include "server/coordinator/routes/routes.hpp"

namespace chorus::coordinator {

using boost::asio::awaitable;
using http::Body;
using http::Request;
using http::Response;

void SimulationRoutes::add_to(http::Router& router) {
  router.add(http::Method::post, "/v1/simulations", http::Access::read, handler(this, &SimulationRoutes::post));
}

awaitable<Response> SimulationRoutes::post(Request const&, Body& body) {
  auto message = co_await read_message<api::SimulationRequest>(body);
  if (message.has_error()) co_return message.error();
  auto const answer = co_await planner_.simulate(std::move(message.value()));
  if (answer.has_error()) co_return answer.error();
  co_return Response::json(200, http::encode(answer.value()));
}

}  // namespace chorus::coordinator
