// How to wait for what was given to another thread.
#pragma once

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace chorus::http {

// A completion token for co_spawn() on another thread. A cancellation does not cross threads, and what was lent to the
// work has to stay: so it is waited for, whatever happens to who waits.
inline auto until_done_there() {
  return boost::asio::bind_cancellation_slot(boost::asio::cancellation_slot(), boost::asio::use_awaitable);
}

}  // namespace chorus::http
