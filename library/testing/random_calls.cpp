#include "library/testing/random_calls.hpp"

#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace chorus::library::testing {
namespace {

constexpr std::size_t most_elements = 64;

using Collective = decltype(&chorus_all_reduce);
using Beginning = decltype(&chorus_all_reduce_async);
constexpr std::array<Collective, 6> collectives{chorus_all_reduce,     chorus_reduce, chorus_all_gather,
                                                chorus_reduce_scatter, chorus_gather, chorus_all_to_all};
constexpr std::array<Beginning, 7> beginnings{chorus_all_reduce_async,     chorus_reduce_async, chorus_all_gather_async,
                                              chorus_reduce_scatter_async, chorus_gather_async, chorus_scatter_async,
                                              chorus_all_to_all_async};
constexpr std::array lists{chorus_all_gather_list, chorus_reduce_scatter_list, chorus_all_to_all_list};
constexpr std::array list_beginnings{chorus_all_gather_list_async, chorus_reduce_scatter_list_async,
                                     chorus_all_to_all_list_async};

}  // namespace

RandomCalls::~RandomCalls() {
  while (!begun_.empty() || !groups_.empty())
    if (groups_.empty() || (!begun_.empty() && dice_.one_in(2)))
      begun_.pop_front();
    else
      groups_.pop_back();
  for (auto& one : memory_) {
    one.block.reset();
    std::free(one.pages);
  }
}

void RandomCalls::check(chorus_status_t status, bool may_be_pending) const {
  if (status >= CHORUS_OK && status < CHORUS_PENDING) return;
  if (status == CHORUS_CANCELLED || status == CHORUS_NOT_CANCELLABLE) return;
  if (status == CHORUS_PENDING && may_be_pending) return;
  throw std::runtime_error(std::string("a call ended with ") + chorus_status_name(status) + ": " +
                           chorus_error_text(error_.get()));
}

chorus_group_t* RandomCalls::group() {
  auto const which = dice_.below(shared_groups_.size() + groups_.size() + 1);
  if (which < shared_groups_.size()) return shared_groups_[which];
  return which - shared_groups_.size() < groups_.size() ? groups_[which - shared_groups_.size()].get() : nullptr;
}

chorus_worker_t* RandomCalls::worker() { return dice_.one_in(8) ? nullptr : workers_[dice_.below(workers_.size())]; }

std::size_t RandomCalls::size(std::size_t right, std::size_t first) {
  if (!dice_.one_in(4)) return right;
  return dice_.pick<std::size_t>({0, 1, first - 1, first, right + 1, right + 32, SIZE_MAX});
}

template <class Tensor>
Tensor RandomCalls::any(std::vector<std::int32_t>& memory) {
  memory.assign(most_elements, static_cast<std::int32_t>(dice_.below(100)));
  Tensor tensor{};
  tensor.data = dice_.one_in(8) ? nullptr : memory.data();
  tensor.elements = dice_.pick<std::uint64_t>({0, 1, 2, 4, 7, 16});
  tensor.dtype = dice_.pick<chorus_dtype_t>({CHORUS_I32, CHORUS_I32, CHORUS_F32, CHORUS_U8, CHORUS_F64, 12, -1});
  tensor.reserved = dice_.one_in(16) ? 1 : 0;
  if (tensor.data == nullptr && dice_.one_in(2)) tensor.elements = std::numeric_limits<std::uint64_t>::max();
  return tensor;
}

std::string const& RandomCalls::name() {
  static std::array<std::string, 5> const names{"g", "h", "nobody", "no/name", std::string(300, 'x')};
  return names[dice_.below(names.size())];
}

chorus_collective_options_t const* RandomCalls::collective_options() {
  collective_ = {};
  auto& options = collective_.known;
  options.size = size(sizeof(options), 88);
  options.timeout_ms = dice_.pick<std::int64_t>({1, 3, 10, 10, -1, std::numeric_limits<std::int64_t>::min()});
  if (dice_.one_in(4)) collective_.unknown.fill(static_cast<unsigned char>(dice_.below(2)));
  if (dice_.one_in(4)) options.reduce = dice_.pick<chorus_reduce_t>({1, 2, 5, 7, 8, -1});
  if (dice_.one_in(4)) options.root = dice_.pick<std::uint32_t>({1, 2, std::numeric_limits<std::uint32_t>::max()});
  if (dice_.one_in(4)) options.algorithm = dice_.pick<char const*>({"ring", "tree", "direct", "", "best"});
  if (dice_.one_in(8)) options.arity = dice_.pick<std::uint32_t>({1, 2, std::numeric_limits<std::uint32_t>::max()});
  if (dice_.one_in(8)) {
    options.algorithm_shape = dice_.one_in(4) ? nullptr : shape_.data();
    options.algorithm_shape_length = dice_.below(4);
  }
  auto const count = [&](std::array<std::uint64_t, 4>& counts, std::uint64_t const*& list, std::size_t& length) {
    for (auto& one : counts) one = dice_.pick<std::uint64_t>({0, 1, 2, 4, std::numeric_limits<std::uint64_t>::max()});
    list = dice_.one_in(4) ? nullptr : counts.data();
    length = dice_.below(5);
  };
  if (dice_.one_in(4)) count(counts_, options.counts, options.counts_length);
  if (dice_.one_in(4)) count(receive_counts_, options.receive_counts, options.receive_counts_length);
  return &options;
}

chorus_message_options_t const* RandomCalls::message_options() {
  message_ = {};
  auto& options = message_.known;
  options.size = size(sizeof(options), 24);
  options.tag = dice_.pick<std::uint32_t>({0, 1, 0x7fffffff, 0x80000000});
  options.reserved = dice_.one_in(8) ? 1 : 0;
  options.timeout_ms = dice_.pick<std::int64_t>({1, 3, 10, 10, -1});
  return &options;
}

chorus_group_options_t const* RandomCalls::group_options() {
  if (dice_.one_in(8)) return nullptr;
  group_ = {};
  auto& options = group_.known;
  options.size = size(sizeof(options), 40);
  ids_.clear();
  for (auto n = dice_.below(4); n > 0; --n)
    ids_.push_back(dice_.pick<char const*>({"w0", "w0", "w1", "w1", "w2", "no id", nullptr}));
  options.workers = dice_.one_in(8) ? nullptr : ids_.data();
  options.workers_length = ids_.size();
  options.ranks = dice_.one_in(4) ? 2 : 0;
  options.order = dice_.pick<char const*>({nullptr, nullptr, "listed", "locality", "random"});
  return &options;
}

void RandomCalls::ask_worker() {
  chorus_worker_info_t info{};
  info.size = size(sizeof(info), 24);
  switch (dice_.below(16)) {
    case 0:
      return check(chorus_worker_stop(worker(), error()));
    default:
      return check(chorus_worker_describe(worker(), dice_.one_in(4) ? nullptr : &info, error()));
  }
}

void RandomCalls::ask_group() {
  chorus_group_info_t info{};
  info.size = size(sizeof(info), 32);
  std::uint64_t begin = 0, length = 0;
  char const* path = nullptr;
  std::array<char, 8> text{};
  std::size_t whole = 0;
  switch (dice_.below(4)) {
    case 0:
      return check(chorus_group_describe(group(), dice_.one_in(4) ? nullptr : &info, error()));
    case 1:
      return check(chorus_group_path(group(), dice_.one_in(4) ? nullptr : &path, error()));
    case 2:
      return check(chorus_group_block(group(), static_cast<std::uint32_t>(dice_.below(4)), dice_.below(1000),
                                      dice_.one_in(4) ? nullptr : &begin, &length, error()));
    default:
      return check(chorus_group_why_not_shared(group(), dice_.one_in(4) ? nullptr : text.data(),
                                               dice_.below(text.size() + 1), dice_.one_in(2) ? nullptr : &whole,
                                               error()));
  }
}

void RandomCalls::make_group() {
  auto const timeout_ms = dice_.pick<std::int64_t>({0, 1, 10, 10, -1});
  chorus_group_t* made = nullptr;
  chorus_group_t** const to = dice_.one_in(8) ? nullptr : &made;
  switch (dice_.below(5)) {
    case 0:
      check(chorus_worker_join(worker(), dice_.one_in(8) ? nullptr : name().c_str(), timeout_ms, to, error()));
      break;
    case 1:
      check(chorus_worker_create_group(worker(), dice_.one_in(8) ? nullptr : name().c_str(), group_options(),
                                       timeout_ms, to, error()));
      break;
    case 2:
      ranks_.clear();
      for (auto n = dice_.below(4); n > 0; --n) ranks_.push_back(static_cast<std::uint32_t>(dice_.below(3)));
      check(chorus_group_subgroup(group(), ranks_.data(), ranks_.size(), timeout_ms, to, error()));
      break;
    case 3:
      if (dice_.one_in(4))
        check(chorus_worker_delete_group(worker(), dice_.one_in(8) ? nullptr : name().c_str(), timeout_ms, error()));
      break;
    default:
      if (!groups_.empty()) groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(dice_.below(groups_.size())));
  }
  if (made != nullptr) groups_.emplace_back(made);
}

void RandomCalls::call_collective() {
  std::vector<std::int32_t> in, out;
  auto const input = any<chorus_const_tensor_t>(in);
  auto const output = any<chorus_tensor_t>(out);
  auto const* const from = dice_.one_in(2) ? nullptr : &input;
  auto const* const to = dice_.one_in(8) ? nullptr : &output;
  auto const count = dice_.below(2);
  auto const which = dice_.below(collectives.size() + 6);
  if (which < collectives.size()) return check(collectives[which](group(), from, to, collective_options(), error()));
  switch (which - collectives.size()) {
    case 0:
      return check(chorus_scatter(group(), from, to, collective_options(), error()));
    case 1:
      return check(chorus_broadcast(group(), to, collective_options(), error()));
    case 2:
      return check(chorus_barrier(group(), collective_options(), error()));
    case 3:
      return check(chorus_all_reduce_list(group(), to, count, collective_options(), error()));
    case 4:
      return check(lists[dice_.below(lists.size())](group(), from, to, count, collective_options(), error()));
    default:
      return check(chorus_broadcast_list(group(), to, count, collective_options(), error()));
  }
}

void RandomCalls::begin_collective() {
  auto& begun = begun_.emplace_back();
  auto const input = any<chorus_const_tensor_t>(begun.in);
  auto const output = any<chorus_tensor_t>(begun.out);
  auto const* const from = dice_.one_in(2) ? nullptr : &input;
  auto const* const to = dice_.one_in(8) ? nullptr : &output;
  chorus_request_t* request = nullptr;
  chorus_request_t** const made = dice_.one_in(8) ? nullptr : &request;
  auto const which = dice_.below(beginnings.size() + 4);
  chorus_status_t status = CHORUS_OK;
  if (which < beginnings.size())
    status = beginnings[which](group(), from, to, collective_options(), made, error());
  else if (which == beginnings.size())
    status = chorus_barrier_async(group(), collective_options(), made, error());
  else if (which == beginnings.size() + 1)
    status = chorus_broadcast_async(group(), to, collective_options(), made, error());
  else if (which == beginnings.size() + 2)
    status = list_beginnings[dice_.below(lists.size())](group(), from, to, dice_.below(2), collective_options(), made,
                                                        error());
  else
    status = chorus_reduce_list_async(group(), to, dice_.below(2), collective_options(), made, error());
  begun.request.reset(request);
  check(status);
}

void RandomCalls::call_message() {
  auto& begun = begun_.emplace_back();
  auto const sent = any<chorus_const_tensor_t>(begun.in);
  auto const into = any<chorus_tensor_t>(begun.out);
  auto const* const from = dice_.one_in(8) ? nullptr : &sent;
  auto const* const to = dice_.one_in(8) ? nullptr : &into;
  auto const peer = dice_.pick<std::uint32_t>({0, 1, 2, std::numeric_limits<std::uint32_t>::max()});
  auto const source = dice_.pick<std::int64_t>({0, 1, 2, CHORUS_ANY_SOURCE, -2, std::int64_t{1} << 40});
  auto* const received = dice_.one_in(2) ? nullptr : &begun.received;
  chorus_request_t* request = nullptr;
  chorus_status_t status = CHORUS_OK;
  switch (dice_.below(6)) {
    case 0:
      status = chorus_send(group(), from, peer, message_options(), error());
      break;
    case 1:
      status = chorus_recv(group(), to, source, message_options(), received, error());
      break;
    case 2:
      status = chorus_sendrecv(group(), from, peer, to, source, message_options(), received, error());
      break;
    case 3:
      status = chorus_send_async(group(), from, peer, message_options(), &request, error());
      break;
    case 4:
      status = chorus_recv_async(group(), to, source, message_options(), received, &request, error());
      break;
    default:
      status = chorus_sendrecv_async(group(), from, peer, to, source, message_options(), received, &request, error());
  }
  begun.request.reset(request);
  check(status);
}

void RandomCalls::use_request() {
  if (begun_.size() > 8) begun_.pop_front();
  auto* const request = begun_.empty() ? nullptr : begun_.back().request.get();
  std::vector<chorus_request_t*> several;
  for (auto const& one : begun_) several.push_back(one.request.get());
  std::size_t index = 0;
  switch (dice_.below(7)) {
    case 0:
      return check(chorus_request_test(request, error()), true);
    case 1:
      return check(chorus_request_wait(request, error()));
    case 2:
      return check(chorus_request_wait_for(request, dice_.pick<std::int64_t>({0, 1, -1}), error()), true);
    case 3:
      return check(chorus_request_wait_any(several.data(), several.size(), 1, &index, error()), true);
    case 4:
    case 5:
      return check(chorus_request_cancel(request, error()));
    default:
      if (!begun_.empty()) begun_.pop_back();
  }
}

void RandomCalls::use_memory() {
  constexpr std::size_t page = 4096;
  if (memory_.size() > 4) {
    memory_.front().block.reset();
    std::free(memory_.front().pages);
    memory_.pop_front();
  }
  chorus_memory_t* block = nullptr;
  auto& one = memory_.emplace_back();
  if (dice_.one_in(2)) {
    check(chorus_memory_allocate(worker(), dice_.pick<std::size_t>({0, 1, page, SIZE_MAX, SIZE_MAX / 2}), &block,
                                 error()));
  } else {
    one.pages = std::aligned_alloc(page, 4 * page);
    auto* const data = static_cast<char*>(one.pages) + (dice_.one_in(4) ? 8 : 0);
    check(chorus_memory_register(worker(), dice_.one_in(8) ? nullptr : data, dice_.pick<std::size_t>({0, 1, page}),
                                 &block, error()));
  }
  one.block.reset(block);
}

void RandomCalls::start_worker() {
  Padded<chorus_worker_options_t> padded;
  auto& options = padded.known;
  options.size = size(sizeof(options), 232);
  options.id = dice_.pick<char const*>({"w7", "no id", ""});
  options.coordinator = dice_.pick<char const*>({nullptr, "nonsense", "http://127.0.0.1:1/path"});
  options.host = dice_.pick<char const*>({"127.0.0.1", "no host", "203.0.113.1"});
  options.log_level = dice_.pick<char const*>({"off", "off", "loud"});
  options.spin_us = dice_.pick<std::int64_t>({0, -1, -2});
  options.drain_timeout_ms = -1;
  options.allowed_hosts_length = dice_.below(2);
  chorus_worker_t* started = nullptr;
  check(chorus_worker_start(&options, dice_.one_in(8) ? nullptr : &started, error()));
  chorus_worker_free(started);
}

void RandomCalls::make_one() {
  switch (dice_.below(16)) {
    case 0:
      return ask_worker();
    case 1:
      return ask_group();
    case 2:
    case 3:
      return make_group();
    case 4:
    case 5:
    case 6:
      return call_collective();
    case 7:
    case 8:
      return begin_collective();
    case 9:
    case 10:
      return call_message();
    case 11:
      return use_memory();
    case 12:
      if (dice_.one_in(4)) return start_worker();
      [[fallthrough]];
    default:
      return use_request();
  }
}

}  // namespace chorus::library::testing
