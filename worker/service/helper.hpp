// One thread for work that would hold up the control thread: digests of large tensors.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string>

#include "http/side_thread.hpp"

namespace chorus::service {

// Used on the control thread; the control executor's context outlives it.
class Helper {
 public:
  // `instead`: see SideThread.
  explicit Helper(boost::asio::any_io_executor control, boost::asio::any_io_executor instead = {})
      : control_(std::move(control)), thread_(std::move(instead)) {}
  ~Helper();  // finishes the work at hand, drops what has not begun, joins the thread
  Helper(Helper const&) = delete;
  Helper& operator=(Helper const&) = delete;

  // Runs `work` on the helper thread and resumes on the control thread. `work` owns what it reads: a cancelled caller
  // does not wait for it.
  boost::asio::awaitable<std::string> compute(std::function<std::string()> work);

 private:
  boost::asio::any_io_executor control_;
  http::SideThread thread_;
};

}  // namespace chorus::service
