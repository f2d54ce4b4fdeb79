// Every form of a call of the C interface is the one it says.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>

#include "library/testing/pair.hpp"

using namespace chorus::library::testing;

namespace {

// A call of each kind, blocking or begun and waited for.
using Call = std::function<chorus_status_t(chorus_group_t*, chorus_const_tensor_t const*, chorus_tensor_t const*,
                                           chorus_collective_options_t const*)>;
template <class Begin>
Call waited(Begin begin) {
  return [begin](chorus_group_t* group, chorus_const_tensor_t const* input, chorus_tensor_t const* output,
                 chorus_collective_options_t const* options) {
    chorus_request_t* request = nullptr;
    auto const begun = begin(group, input, output, options, &request, nullptr);
    Request const owned(request);
    return begun != CHORUS_OK ? begun : chorus_request_wait(request, nullptr);
  };
}
template <class Run>
Call blocking(Run run) {
  return [run](chorus_group_t* group, chorus_const_tensor_t const* input, chorus_tensor_t const* output,
               chorus_collective_options_t const* options) { return run(group, input, output, options, nullptr); };
}

// Into memory that a tensor names: an assignment might exchange it.
void put(Numbers const& from, Numbers& to) { std::copy(from.begin(), from.end(), to.begin()); }

struct Forms {
  Call all_reduce, reduce, all_gather, reduce_scatter, gather, scatter, all_to_all;
};

void do_everything(Forms const& forms, chorus_group_t* group, std::uint32_t rank) {
  auto const own = of_rank(rank);
  auto const in = const_tensor(own);
  Numbers result(4);
  auto const out = tensor(result);
  auto x = own;
  auto const in_place = tensor(x);
  auto options = options_of();
  options.root = 1;

  must(forms.all_reduce(group, &in, &out, nullptr) == CHORUS_OK, "all_reduce");
  MUST(result == (Numbers{11, 22, 33, 44}));
  must(forms.all_reduce(group, nullptr, &in_place, nullptr) == CHORUS_OK, "all_reduce in place");
  MUST(x == result);
  options.reduce = CHORUS_MAX;
  must(forms.all_reduce(group, &in, &out, &options) == CHORUS_OK, "all_reduce of maxima");
  MUST(result == of_rank(1));
  options.reduce = CHORUS_SUM;

  must(forms.reduce(group, &in, rank == 1 ? &out : nullptr, &options) == CHORUS_OK, "reduce");
  MUST(rank == 0 || result == (Numbers{11, 22, 33, 44}));
  put(own, x);
  must(forms.reduce(group, nullptr, &in_place, &options) == CHORUS_OK, "reduce in place");
  MUST(x == (rank == 1 ? Numbers{11, 22, 33, 44} : own));

  Numbers const half{own[0], own[1]};
  auto const block = const_tensor(half);
  must(forms.all_gather(group, &block, &out, nullptr) == CHORUS_OK, "all_gather");
  MUST(result == (Numbers{1, 2, 10, 20}));
  put(rank == 0 ? Numbers{1, 2, 0, 0} : Numbers{0, 0, 10, 20}, x);
  must(forms.all_gather(group, nullptr, &in_place, nullptr) == CHORUS_OK, "all_gather in place");
  MUST(x == result);

  Numbers received(2);
  auto const small = tensor(received);
  must(forms.reduce_scatter(group, &in, &small, nullptr) == CHORUS_OK, "reduce_scatter");
  MUST(received == (rank == 0 ? Numbers{11, 22} : Numbers{33, 44}));
  put(own, x);
  must(forms.reduce_scatter(group, nullptr, &in_place, nullptr) == CHORUS_OK, "reduce_scatter in place");
  MUST((Numbers{x[2 * rank], x[2 * rank + 1]}) == received);

  must(forms.gather(group, &block, rank == 1 ? &out : nullptr, &options) == CHORUS_OK, "gather");
  MUST(rank == 0 || result == (Numbers{1, 2, 10, 20}));
  must(forms.scatter(group, rank == 1 ? &in : nullptr, &small, &options) == CHORUS_OK, "scatter");
  MUST(received == (rank == 0 ? Numbers{10, 20} : Numbers{30, 40}));

  must(forms.all_to_all(group, &in, &out, nullptr) == CHORUS_OK, "all_to_all");
  MUST(result == (rank == 0 ? Numbers{1, 2, 10, 20} : Numbers{3, 4, 30, 40}));
  put(own, x);
  must(forms.all_to_all(group, nullptr, &in_place, nullptr) == CHORUS_OK, "all_to_all in place");
  MUST(x == result);

  // Rank 0 has three elements, rank 1 one.
  std::array<std::uint64_t, 2> const counts{3, 1};
  auto uneven = options_of();
  uneven.counts = counts.data();
  uneven.counts_length = 2;
  Numbers const part(own.begin(), own.begin() + (rank == 0 ? 3 : 1));
  auto const uneven_block = const_tensor(part);
  must(forms.all_gather(group, &uneven_block, &out, &uneven) == CHORUS_OK, "all_gather of uneven blocks");
  MUST(result == (Numbers{1, 2, 3, 10}));

  // Rank 0 sends one element to itself and two to rank 1, which sends three and none.
  std::array<std::uint64_t, 2> const sent =
      rank == 0 ? std::array<std::uint64_t, 2>{1, 2} : std::array<std::uint64_t, 2>{3, 0};
  std::array<std::uint64_t, 2> const got =
      rank == 0 ? std::array<std::uint64_t, 2>{1, 3} : std::array<std::uint64_t, 2>{2, 0};
  auto exchange = options_of();
  exchange.counts = sent.data();
  exchange.receive_counts = got.data();
  exchange.counts_length = exchange.receive_counts_length = 2;
  Numbers const three(own.begin(), own.begin() + 3);
  Numbers exchanged(rank == 0 ? 4 : 2);
  auto const from = const_tensor(three);
  auto const to = tensor(exchanged);
  must(forms.all_to_all(group, &from, &to, &exchange) == CHORUS_OK, "all_to_all of uneven blocks");
  MUST(exchanged == (rank == 0 ? Numbers{1, 10, 20, 30} : Numbers{2, 3}));
}

}  // namespace

TEST_CASE("every operation, in place and not, blocking and begun, over shared memory and links") {
  Forms const blocking_forms{blocking(chorus_all_reduce),     blocking(chorus_reduce), blocking(chorus_all_gather),
                             blocking(chorus_reduce_scatter), blocking(chorus_gather), blocking(chorus_scatter),
                             blocking(chorus_all_to_all)};
  Forms const begun_forms{waited(chorus_all_reduce_async), waited(chorus_reduce_async),
                          waited(chorus_all_gather_async), waited(chorus_reduce_scatter_async),
                          waited(chorus_gather_async),     waited(chorus_scatter_async),
                          waited(chorus_all_to_all_async)};
  for (bool const shares_memory : {true, false}) {
    Pair pair(shares_memory);
    for (auto const* const forms : {&blocking_forms, &begun_forms})
      pair.both([&](chorus_group_t* group, std::uint32_t rank) { do_everything(*forms, group, rank); });
    char const* path = nullptr;
    REQUIRE(chorus_group_path(pair.groups[0].get(), &path, nullptr) == CHORUS_OK);
    CHECK(std::string(path) == (shares_memory ? "shm" : "links"));
    std::array<char, 8> why{};
    std::size_t length = 0;
    REQUIRE(chorus_group_why_not_shared(pair.groups[0].get(), why.data(), why.size(), &length, nullptr) == CHORUS_OK);
    CHECK((length == 0) == shares_memory);
    CHECK(std::string(why.data()).size() == std::min<std::size_t>(length, why.size() - 1));
  }
}

TEST_CASE("broadcast, barrier and lists of tensors") {
  Pair pair;
  pair.both([](chorus_group_t* group, std::uint32_t rank) {
    auto x = of_rank(rank);
    auto const whole = tensor(x);
    auto options = options_of();
    options.root = 1;
    must(chorus_broadcast(group, &whole, &options, nullptr) == CHORUS_OK, "broadcast");
    MUST(x == of_rank(1));
    must(chorus_barrier(group, nullptr, nullptr) == CHORUS_OK, "barrier");

    float y = 1.5F * static_cast<float>(rank + 1);
    put(of_rank(rank), x);
    std::array<chorus_tensor_t, 3> const list{whole, chorus_tensor_t{nullptr, 0, CHORUS_U8, 0},
                                              chorus_tensor_t{&y, 1, CHORUS_F32, 0}};
    must(chorus_all_reduce_list(group, list.data(), list.size(), nullptr, nullptr) == CHORUS_OK, "all_reduce_list");
    MUST(x == (Numbers{11, 22, 33, 44}) && y == 4.5F);
    must(chorus_reduce_list(group, list.data(), list.size(), &options, nullptr) == CHORUS_OK, "reduce_list");
    MUST(x[0] == (rank == 1 ? 22 : 11) && y == (rank == 1 ? 9 : 4.5F));
    must(chorus_broadcast_list(group, list.data(), list.size(), &options, nullptr) == CHORUS_OK, "broadcast_list");
    MUST(x[0] == 22 && y == 9);

    std::array<chorus_request_t*, 5> requests{};
    must(chorus_all_reduce_list_async(group, list.data(), 3, nullptr, &requests[0], nullptr) == CHORUS_OK, "begin");
    must(chorus_reduce_list_async(group, list.data(), 3, &options, &requests[1], nullptr) == CHORUS_OK, "begin");
    must(chorus_broadcast_list_async(group, list.data(), 3, &options, &requests[2], nullptr) == CHORUS_OK, "begin");
    must(chorus_broadcast_async(group, &whole, &options, &requests[3], nullptr) == CHORUS_OK, "begin");
    must(chorus_barrier_async(group, nullptr, &requests[4], nullptr) == CHORUS_OK, "begin");
    for (auto* const request : requests) {
      must(chorus_request_wait(request, nullptr) == CHORUS_OK, "wait");
      chorus_request_free(request);
    }
    MUST(x[0] == 88 && y == 36);
  });
}

TEST_CASE("lists of tensors for operations with blocks, in place and not, blocking and begun") {
  for (bool const shares_memory : {true, false}) {
    Pair pair(shares_memory);
    pair.both([](chorus_group_t* group, std::uint32_t rank) {
      auto const own = of_rank(rank);
      std::array<std::uint8_t, 3> const bytes{1, 2, static_cast<std::uint8_t>(rank)};  // blocks of two and of one
      Numbers block{own[0], own[1]}, whole(4), part(2), x = own;
      std::array<std::uint8_t, 3> whole_bytes{};
      std::array<std::uint8_t, 2> part_bytes{};
      std::size_t const part_of = rank == 0 ? 2 : 1;
      chorus_tensor_t const nothing{nullptr, 0, CHORUS_F64, 0};
      chorus_const_tensor_t const no_input{nullptr, 0, CHORUS_F64, 0};
      std::array<chorus_const_tensor_t, 3> const blocks{const_tensor(block), no_input,
                                                        chorus_const_tensor_t{bytes.data(), part_of, CHORUS_U8, 0}};
      std::array<chorus_tensor_t, 3> const wholes{tensor(whole), nothing,
                                                  chorus_tensor_t{whole_bytes.data(), 3, CHORUS_U8, 0}};
      must(chorus_all_gather_list(group, blocks.data(), wholes.data(), 3, nullptr, nullptr) == CHORUS_OK, "all_gather");
      MUST(whole == (Numbers{1, 2, 10, 20}));
      MUST((whole_bytes == std::array<std::uint8_t, 3>{1, 2, 1}));

      std::array<chorus_const_tensor_t, 3> const inputs{const_tensor(own), no_input,
                                                        chorus_const_tensor_t{bytes.data(), 3, CHORUS_U8, 0}};
      std::array<chorus_tensor_t, 3> const parts{tensor(part), nothing,
                                                 chorus_tensor_t{part_bytes.data(), part_of, CHORUS_U8, 0}};
      chorus_request_t* begun = nullptr;
      must(chorus_reduce_scatter_list_async(group, inputs.data(), parts.data(), 3, nullptr, &begun, nullptr) ==
               CHORUS_OK,
           "begins");
      Request const scattering(begun);
      must(chorus_request_wait(begun, nullptr) == CHORUS_OK, "reduce_scatter");
      MUST(part == (rank == 0 ? Numbers{11, 22} : Numbers{33, 44}));
      MUST(part_bytes[0] == (rank == 0 ? 2 : 1) && part_bytes[1] == (rank == 0 ? 4 : 0));

      Numbers exchanged(4);
      std::array<chorus_tensor_t, 2> const outputs{tensor(exchanged), nothing};
      must(chorus_all_to_all_list(group, inputs.data(), outputs.data(), 2, nullptr, nullptr) == CHORUS_OK, "list");
      MUST(exchanged == (rank == 0 ? Numbers{1, 2, 10, 20} : Numbers{3, 4, 30, 40}));

      std::array<chorus_tensor_t, 2> const in_place{tensor(x), nothing};
      must(chorus_all_to_all_list(group, nullptr, in_place.data(), 2, nullptr, nullptr) == CHORUS_OK, "in place");
      MUST(x == exchanged);
      must(chorus_all_to_all_list_async(group, nullptr, in_place.data(), 2, nullptr, &begun, nullptr) == CHORUS_OK,
           "begins");
      must(chorus_request_wait(Request(begun).get(), nullptr) == CHORUS_OK, "back again");
      MUST(x == own);
      must(chorus_all_gather_list_async(group, nullptr, in_place.data(), 2, nullptr, &begun, nullptr) == CHORUS_OK,
           "begins");
      must(chorus_request_wait(Request(begun).get(), nullptr) == CHORUS_OK, "all_gather in place");
      MUST(x == (Numbers{1, 2, 30, 40}));
      must(chorus_reduce_scatter_list(group, nullptr, in_place.data(), 2, nullptr, nullptr) == CHORUS_OK, "in place");
      MUST(x[2 * rank] == (rank == 0 ? 2 : 60));
      must(chorus_all_gather_list(group, nullptr, nullptr, 0, nullptr, nullptr) == CHORUS_OK, "a list of nothing");
    });
  }
}

TEST_CASE("a list that cannot be is refused with the place of what is wrong, and a corrected one is in step") {
  Pair pair;
  auto const error = new_error();
  auto* const group = pair.groups[0].get();
  Numbers four{1, 2, 3, 4}, three(3);
  auto const refused = [&](chorus_status_t status, std::string const& why) {
    CAPTURE(chorus_error_text(error.get()));
    CHECK(status == CHORUS_BAD_ARGUMENT);
    CHECK(std::string(chorus_error_text(error.get())).find(why) != std::string::npos);
  };
  std::array<chorus_const_tensor_t, 2> const inputs{const_tensor(four), const_tensor(four)};
  std::array<chorus_tensor_t, 2> const outputs{tensor(four), tensor(three)};
  refused(chorus_all_gather_list(group, inputs.data(), nullptr, 2, nullptr, error.get()),
          "outputs is NULL, and count 2");
  refused(chorus_reduce_scatter_list(group, inputs.data(), outputs.data(), 2, nullptr, error.get()), "tensor 0: ");
  refused(chorus_all_to_all_list(group, nullptr, outputs.data(), 2, nullptr, error.get()),
          "tensor 1: all_to_all in place is of equal blocks, not of 3 elements");
  std::array<chorus_tensor_t, 2> const of_other{outputs[0], chorus_tensor_t{four.data(), 4, 99, 0}};
  refused(chorus_all_gather_list(group, nullptr, of_other.data(), 2, nullptr, error.get()), "output 1: 99 is no dtype");
  auto options = options_of();
  std::array<std::uint64_t, 2> const counts{3, 1};
  options.counts = counts.data();
  options.counts_length = 2;
  refused(chorus_all_gather_list(group, nullptr, outputs.data(), 1, &options, error.get()),
          "all_gather of a list takes no counts");
  refused(chorus_all_reduce_list(group, outputs.data(), 1, &options, error.get()),
          "all_reduce of a list takes no counts");
  pair.both([](chorus_group_t* each, std::uint32_t) {
    must(chorus_barrier(each, nullptr, nullptr) == CHORUS_OK, "the group goes on");
  });
}

TEST_CASE("a request is pending until the others have called, and any of several is found when it has ended") {
  Pair pair;
  auto const error = new_error();
  Numbers mine{1}, yours{2};
  auto const x = tensor(mine), y = tensor(yours);
  std::array<chorus_request_t*, 2> requests{};
  REQUIRE(chorus_all_reduce_async(pair.groups[0].get(), nullptr, &x, nullptr, &requests[0], nullptr) == CHORUS_OK);
  REQUIRE(chorus_barrier_async(pair.groups[0].get(), nullptr, &requests[1], nullptr) == CHORUS_OK);
  Request const first(requests[0]), second(requests[1]);
  CHECK(chorus_request_test(requests[0], error.get()) == CHORUS_PENDING);
  CHECK(chorus_error_status(error.get()) == CHORUS_PENDING);
  CHECK(chorus_request_wait_for(requests[0], 1, nullptr) == CHORUS_PENDING);
  std::size_t index = 7;
  CHECK(chorus_request_wait_any(requests.data(), 2, 0, &index, nullptr) == CHORUS_PENDING);
  CHECK(index == 7);

  CHECK(chorus_all_reduce(pair.groups[1].get(), nullptr, &y, nullptr, nullptr) == CHORUS_OK);
  CHECK(chorus_request_wait_any(requests.data(), 2, 20'000, &index, error.get()) == CHORUS_OK);
  CHECK(index == 0);
  CHECK(mine[0] == 3);
  CHECK(chorus_request_test(requests[1], nullptr) == CHORUS_PENDING);
  CHECK(chorus_barrier(pair.groups[1].get(), nullptr, nullptr) == CHORUS_OK);
  CHECK(chorus_request_wait_for(requests[1], 20'000, error.get()) == CHORUS_OK);
  CHECK(chorus_error_status(error.get()) == CHORUS_OK);
}
