// Waiting for work on another thread.
#pragma once

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace chorus::http {

// A completion token for co_spawn() on another thread. The waiting coroutine ignores cancellation until the work has
// ended: cancellation does not cross threads, and the work uses objects of the waiting coroutine.
inline auto until_done_there() {
  return boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(), boost::asio::use_awaitable);
}

}  // namespace chorus::http
