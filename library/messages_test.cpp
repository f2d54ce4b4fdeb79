// Messages of the C interface, in every form.
#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "library/testing/pair.hpp"

using namespace chorus::library::testing;

namespace {

chorus_message_options_t tagged(std::uint32_t tag, std::int64_t timeout_ms = 0) {
  chorus_message_options_t options{};
  options.size = sizeof(options);
  options.tag = tag;
  options.timeout_ms = timeout_ms;
  return options;
}

}  // namespace

TEST_CASE("a message is sent and received in each form") {
  for (bool const shares_memory : {true, false}) {
    Pair pair(shares_memory);
    pair.both([](chorus_group_t* group, std::uint32_t rank) {
      auto const own = of_rank(rank), others = of_rank(1 - rank);
      auto const out = const_tensor(own);
      Numbers got(6, -1);
      auto const in = tensor(got);
      auto const options = tagged(3);
      chorus_received_t received{};
      auto const is_there = [&] {
        bool const is_told = received.bytes == 16 && received.source == 1 - rank;
        bool const is_whole = std::equal(others.begin(), others.end(), got.begin()) && got[4] == -1;
        received = {};
        std::fill(got.begin(), got.end(), -1);
        return is_told && is_whole;
      };

      if (rank == 0) must(chorus_send(group, &out, 1, &options, nullptr) == CHORUS_OK, "send");
      must(chorus_recv(group, &in, CHORUS_ANY_SOURCE, &options, &received, nullptr) == CHORUS_OK, "recv");
      MUST(is_there());
      if (rank == 1) must(chorus_send(group, &out, 0, &options, nullptr) == CHORUS_OK, "send");

      must(chorus_sendrecv(group, &out, 1 - rank, &in, 1 - rank, nullptr, &received, nullptr) == CHORUS_OK, "sendrecv");
      MUST(is_there());

      chorus_request_t *sending = nullptr, *receiving = nullptr;
      must(chorus_recv_async(group, &in, 1 - rank, &options, &received, &receiving, nullptr) == CHORUS_OK, "begins");
      must(chorus_send_async(group, &out, 1 - rank, &options, &sending, nullptr) == CHORUS_OK, "begins");
      Request const first(sending), second(receiving);
      must(chorus_request_wait(sending, nullptr) == CHORUS_OK, "send_async");
      must(chorus_request_wait(receiving, nullptr) == CHORUS_OK, "recv_async");
      MUST(is_there());

      chorus_request_t* both = nullptr;
      must(
          chorus_sendrecv_async(group, &out, 1 - rank, &in, 1 - rank, &options, &received, &both, nullptr) == CHORUS_OK,
          "begins");
      Request const third(both);
      must(chorus_request_wait_for(both, 20'000, nullptr) == CHORUS_OK, "sendrecv_async");
      MUST(is_there());
    });
  }
}

TEST_CASE("a receive is cancelled once, and the next one gets the message") {
  Pair pair;
  pair.both([](chorus_group_t* group, std::uint32_t rank) {
    Numbers const sent{7, 8};
    auto const out = const_tensor(sent);
    if (rank == 0) {
      must(chorus_barrier(group, nullptr, nullptr) == CHORUS_OK, "the receive is cancelled");
      must(chorus_send(group, &out, 1, nullptr, nullptr) == CHORUS_OK, "send");
      return;
    }
    auto const error = new_error();
    Numbers cancelled(2, -1), got(2);
    auto const first = tensor(cancelled), second = tensor(got);
    chorus_received_t received{};
    chorus_request_t* begun = nullptr;
    must(chorus_recv_async(group, &first, CHORUS_ANY_SOURCE, nullptr, &received, &begun, nullptr) == CHORUS_OK, "recv");
    Request const request(begun);
    for (int time = 0; time < 2; ++time) must(chorus_request_cancel(begun, nullptr) == CHORUS_OK, "cancel");
    must(chorus_request_wait(begun, error.get()) == CHORUS_CANCELLED, "it is cancelled");
    must(std::string(chorus_error_text(error.get())) == "the receive was cancelled", "and says so");
    must(chorus_barrier(group, nullptr, nullptr) == CHORUS_OK, "the group goes on");
    must(chorus_recv_async(group, &second, 0, nullptr, &received, &begun, nullptr) == CHORUS_OK, "recv");
    Request const next(begun);
    must(chorus_request_wait(begun, nullptr) == CHORUS_OK, "it gets the message");
    MUST(got == sent);
    MUST(cancelled == Numbers(2, -1));
    must(chorus_request_cancel(begun, error.get()) == CHORUS_NOT_CANCELLABLE, "too late");
    must(std::string(chorus_error_text(error.get())) == "the call has ended", "and says why");
    must(chorus_request_wait(begun, nullptr) == CHORUS_OK, "it stays as it was");
  });
}

TEST_CASE("neither a collective nor a send is cancelled, begun or not, and both go on") {
  Pair pair;
  pair.both([](chorus_group_t* group, std::uint32_t rank) {
    auto const error = new_error();
    Numbers numbers(200'000, 1);
    auto const out = const_tensor(numbers);
    auto const go_on = tagged(1);
    chorus_request_t *first = nullptr, *queued = nullptr, *sending = nullptr;
    if (rank == 0) {
      must(chorus_barrier_async(group, nullptr, &first, nullptr) == CHORUS_OK, "begins");
      must(chorus_barrier_async(group, nullptr, &queued, nullptr) == CHORUS_OK, "waits for its turn");
      must(chorus_send_async(group, &out, 1, nullptr, &sending, nullptr) == CHORUS_OK, "waits for its receive");
      Request const a(first), b(queued), c(sending);
      for (auto* const request : {first, queued, sending}) {
        must(chorus_request_cancel(request, error.get()) == CHORUS_NOT_CANCELLABLE, "refused");
        must(std::strstr(chorus_error_text(error.get()), "only a receive can be cancelled") != nullptr, "says why");
      }
      must(chorus_send(group, &out, 1, &go_on, nullptr) == CHORUS_OK, "rank 1 may begin");
      for (auto* const request : {first, queued, sending}) must(chorus_request_wait(request, nullptr) == CHORUS_OK, "");
      return;
    }
    auto const in = tensor(numbers);
    for (auto const* const options : {&go_on, static_cast<chorus_message_options_t const*>(nullptr)})
      must(chorus_recv(group, &in, 0, options, nullptr, nullptr) == CHORUS_OK, "recv");
    for (int call = 0; call < 2; ++call) must(chorus_barrier(group, nullptr, nullptr) == CHORUS_OK, "barrier");
  });
}

TEST_CASE("a member sends itself messages, also the only member of a group") {
  Pair pair;
  pair.both([](chorus_group_t* group, std::uint32_t rank) {
    auto const own = of_rank(rank);
    auto const out = const_tensor(own);
    Numbers got(4);
    auto const in = tensor(got);
    chorus_received_t received{};
    must(chorus_send(group, &out, rank, nullptr, nullptr) == CHORUS_OK, "waits for no receive");
    must(chorus_recv(group, &in, CHORUS_ANY_SOURCE, nullptr, &received, nullptr) == CHORUS_OK, "recv");
    MUST(got == own);
    MUST(received.source == rank && received.bytes == 16);
    Numbers again(4);
    auto const into = tensor(again);
    must(chorus_sendrecv(group, &out, rank, &into, rank, nullptr, &received, nullptr) == CHORUS_OK, "sendrecv");
    MUST(again == own);
  });
}

TEST_CASE("what C hands over for a message is checked") {
  Pair pair;
  auto* const group = pair.groups[0].get();
  auto const error = new_error();
  Numbers numbers(4);
  auto const out = const_tensor(numbers);
  auto const in = tensor(numbers);
  auto const refused = [&](chorus_status_t status, std::string const& why) {
    CHECK(status == CHORUS_BAD_ARGUMENT);
    CAPTURE(chorus_error_text(error.get()));
    CHECK(std::string(chorus_error_text(error.get())).find(why) != std::string::npos);
  };
  auto const large = tagged(0x80000000);
  auto odd = tagged(1);
  odd.size = 3;
  refused(chorus_send(nullptr, &out, 1, nullptr, error.get()), "group is NULL");
  refused(chorus_send(group, nullptr, 1, nullptr, error.get()), "tensor is NULL");
  refused(chorus_send(group, &out, 2, nullptr, error.get()), "rank 2 in a group of 2");
  refused(chorus_send(group, &out, 1, &large, error.get()), "tag 2147483648");
  refused(chorus_send(group, &out, 1, &odd, error.get()), "size is 3");
  refused(chorus_recv(group, &in, -2, nullptr, nullptr, error.get()), "source is -2");
  refused(chorus_recv(group, nullptr, 1, nullptr, nullptr, error.get()), "tensor is NULL");
  refused(chorus_sendrecv(group, &out, 1, nullptr, 1, nullptr, nullptr, error.get()), "into is NULL");
  refused(chorus_send_async(group, &out, 1, nullptr, nullptr, error.get()), "request is NULL");
  chorus_request_t* request = nullptr;
  refused(chorus_recv_async(group, nullptr, 1, nullptr, nullptr, &request, error.get()), "tensor is NULL");
  CHECK(request == nullptr);

  auto const brief = tagged(1, 20);
  CHECK(chorus_recv(group, &in, 1, &brief, nullptr, error.get()) == CHORUS_DEADLINE_EXCEEDED);
  CHECK(std::strstr(chorus_error_text(error.get()), "no message with tag 1 from rank 1 (w1)") != nullptr);
  pair.both(
      [](chorus_group_t* each, std::uint32_t) { must(chorus_barrier(each, nullptr, nullptr) == CHORUS_OK, "on"); });
}
