// Calls of the C interface that are refused before anything is sent.
#include <stdexcept>
#include <utility>

#include "library/testing/random_calls.hpp"

namespace chorus::library::testing {

void RandomCalls::make_wrong_one(chorus_group_t* group) {
  std::vector<std::int32_t> memory(16);
  chorus_tensor_t tensor{memory.data(), 4, CHORUS_I32, 0};
  chorus_collective_options_t options = options_of(10'000);
  chorus_request_t* request = nullptr;
  chorus_status_t status = CHORUS_OK;
  switch (dice_.below(12)) {
    case 0:
      options.size = dice_.pick<std::size_t>({0, 87, SIZE_MAX});
      status = chorus_all_reduce(group, nullptr, &tensor, &options, error());
      break;
    case 1:
      tensor.dtype = dice_.pick<chorus_dtype_t>({-1, 12});
      status = chorus_all_reduce(group, nullptr, &tensor, &options, error());
      break;
    case 2:
      tensor.data = nullptr;
      status = chorus_all_reduce_async(group, nullptr, &tensor, &options, &request, error());
      break;
    case 3:
      options.root = 2;
      status = chorus_broadcast(group, &tensor, &options, error());
      break;
    case 4:
      options.algorithm = "best";
      status = chorus_all_gather(group, nullptr, &tensor, &options, error());
      break;
    case 5:
      options.timeout_ms = -5;
      status = chorus_barrier(group, &options, error());
      break;
    case 6:
      options.counts = counts_.data();
      options.counts_length = 3;
      status = chorus_reduce_scatter(group, nullptr, &tensor, &options, error());
      break;
    case 7:
      status = chorus_recv(group, &tensor, 2, nullptr, nullptr, error());
      break;
    case 8:
      status = chorus_request_cancel(nullptr, error());
      break;
    case 9:
      status = chorus_all_gather_list(group, nullptr, nullptr, 1, &options, error());
      break;
    case 10: {
      chorus_const_tensor_t const input{memory.data(), 3, CHORUS_I32, 0};
      status = chorus_reduce_scatter_list_async(group, &input, &tensor, 1, &options, &request, error());
      Request const begun(request);
      if (status == CHORUS_OK) status = chorus_request_wait(std::exchange(request, nullptr), error());
      break;
    }
    default:
      tensor.elements = 3;  // which two ranks cannot divide
      status = chorus_all_to_all(group, nullptr, &tensor, &options, error());
  }
  if (request != nullptr || status != CHORUS_BAD_ARGUMENT)
    throw std::runtime_error(std::string("a wrong call ended with ") + chorus_status_name(status));
}

}  // namespace chorus::library::testing
