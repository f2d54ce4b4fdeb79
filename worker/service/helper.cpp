#include "worker/service/helper.hpp"

#include "worker/service/pending.hpp"

namespace chorus::service {

Helper::~Helper() { thread_.drop(); }

boost::asio::awaitable<std::string> Helper::compute(std::function<std::string()> work) {
  auto const result = std::make_shared<Pending<std::string>>(control_);
  boost::asio::post(thread_.executor(),
                    [result, work = std::move(work)] { Pending<std::string>::resolve(result, work()); });
  co_return co_await result->take();
}

}  // namespace chorus::service
