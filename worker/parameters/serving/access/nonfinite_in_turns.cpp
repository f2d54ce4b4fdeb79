#include "worker/parameters/serving/access/nonfinite_in_turns.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "worker/parameters/optimizers/nonfinite.hpp"
#include "worker/parameters/shard/pushes/step.hpp"

namespace chorus::parameters {

boost::asio::awaitable<std::uint64_t> nonfinite_in_turns(Push push) {
  constexpr std::size_t portion_bytes = 4 << 20;
  std::uint64_t found = 0;
  for (auto left = gradient_of(push).bytes; !left.empty();) {
    auto const portion = left.first(std::min(left.size(), portion_bytes));
    found += count_nonfinite(push.dtype, portion);
    left = left.subspan(portion.size());
    if (!left.empty()) co_await boost::asio::post(boost::asio::use_awaitable);
  }
  co_return found;
}

}  // namespace chorus::parameters
