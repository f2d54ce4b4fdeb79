// Pushes of rows to two owners, through one of them, the other one, and a worker that owns nothing.
#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <limits>
#include <span>

#include "http/wire/message_checksum.hpp"
#include "tests/support/fleets/parameters.hpp"
#include "tests/support/raw_http.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
using Rows = std::vector<std::uint64_t>;
constexpr std::chrono::seconds patience{60};
constexpr std::uint64_t rows_of_each = 200'000, width = 2;

// Workers w0 and w1 own a half of the rows of "w" each.
struct Owned {
  explicit Owned(std::string const& more = "") : cluster(3) {
    cluster.make_group("g", {"w0", "w1"});
    auto const made =
        cluster.coordinator.put("/v1/parameters/w", R"({"group":"g","shards":2,"shape":[400000,2])" + more + "}");
    REQUIRE_MESSAGE(made.status == 201, made.body);
  }
  Cluster cluster;
};

std::string body_of(Rows const& rows, Floats const& gradient) {
  return ParameterClient::bytes(rows) + ParameterClient::bytes(gradient);
}

Answer push(ParameterClient& client, Rows const& rows, Floats const& gradient, httplib::Headers headers = {}) {
  headers.emplace("Chorus-Rows", std::to_string(rows.size()));
  return client.push("w", body_of(rows, gradient), {}, "rows/gradient", std::move(headers));
}

std::string head_of(std::uint64_t sequence, std::size_t rows, std::string const& more) {
  return "POST /v1/parameters/w/rows/gradient HTTP/1.1\r\nHost: localhost\r\nChorus-Client: raw\r\nChorus-Sequence: " +
         std::to_string(sequence) + "\r\nChorus-Rows: " + std::to_string(rows) + "\r\n" + more + "\r\n";
}

std::string with_length(std::string const& body) { return "Content-Length: " + std::to_string(body.size()) + "\r\n"; }

Floats pulled(Service const& worker, Rows const& rows) {
  ParameterClient const reader(worker.url, "r");
  auto const answer = reader.post("/v1/parameters/w/rows", ParameterClient::bytes(rows),
                                  {{"Chorus-Rows", std::to_string(rows.size())}});
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return ParameterClient::values<float>(answer.body);
}

// "1.V", or "1.V-1.W" if the versions of the owners differ.
std::string versions(Service const& worker) { return ParameterClient(worker.url, "r").pull("w").header("ETag"); }

// Each second row of both halves, so that the index alone is larger than what is checked at once.
Rows many_rows() {
  Rows rows(rows_of_each);
  for (std::uint64_t i = 0; i < rows.size(); ++i) rows[i] = 2 * i;
  return rows;
}

Floats counting(std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1021);
  return values;
}

}  // namespace

TEST_CASE(
    "rows have the same values by every way: through each owner, through another worker, in chunks, judged first") {
  for (std::string const policy : {"accept", "reject"}) {
    Owned w(R"(,"nonfinite":")" + policy + '"');
    auto const rows = many_rows();
    auto const gradient = counting(rows.size() * width);
    float times = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      ParameterClient client(w.cluster.worker(i).url, "c" + std::to_string(i));
      auto const answer = push(client, rows, gradient);
      REQUIRE_MESSAGE(answer.status == 200, answer.body);
      CHECK(answer.header("ETag") == "\"1." + std::to_string(i + 1) + '"');
      CHECK(answer.json().at("version") == i + 1);
      CHECK(answer.json().at("next_sequence") == 1);
      ++times;
      Floats expected(gradient);
      for (auto& value : expected) value *= times;
      CHECK((pulled(w.cluster.worker(2 - i), rows) == expected));
    }
    CHECK(pulled(w.cluster.worker(0), {1, 2 * rows_of_each - 1}) == Floats(2 * width, 0));
  }
  Owned w;
  auto const body = body_of({0, 399'999}, {1, 2, 3, 4});
  std::array<char, 16> size{};
  std::snprintf(size.data(), size.size(), "%zx", body.size());
  RawConnection pipe(w.cluster.worker(2).port());
  pipe.send(head_of(0, 2, "Transfer-Encoding: chunked\r\n") + size.data() + "\r\n" + body + "\r\n0\r\n\r\n");
  CHECK(status_of(pipe.read_answer(patience)) == 200);
  CHECK(pulled(w.cluster.worker(0), {0, 399'999}) == Floats{1, 2, 3, 4});
}

TEST_CASE("a push without a row of one owner, or of both, counts at both") {
  Owned w;
  ParameterClient client(w.cluster.worker(0).url, "c");
  for (Rows const& rows : {Rows{0, 1}, Rows{399'999}, Rows{}, Rows{199'999, 200'000, 200'000}})
    CHECK(push(client, rows, Floats(rows.size() * width, 1)).status == 200);
  CHECK(versions(w.cluster.worker(2)) == "\"1.4\"");
  CHECK(pulled(w.cluster.worker(2), {1, 199'999, 200'000, 399'999}) == Floats{1, 1, 1, 1, 2, 2, 1, 1});
}

TEST_CASE("a body that breaks off after the rows of one owner, and is sent again, counts once at both") {
  Owned w;
  Rows const rows{5, 200'005};
  auto const body = body_of(rows, {1, 2, 3, 4});
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence) {
    auto& worker = w.cluster.worker(sequence);
    auto const count = std::to_string(sequence), next = std::to_string(sequence + 1);
    {
      RawConnection pipe(worker.port());
      pipe.send(head_of(sequence, rows.size(), with_length(body)) + body.substr(0, body.size() - 1));
      REQUIRE(eventually([&] { return versions(worker) == "\"1." + next + "-1." + count + '"'; }));
    }
    for (bool const was_applied : {false, true}) {
      RawConnection pipe(worker.port());
      pipe.send(head_of(sequence, rows.size(), with_length(body)) + body);
      auto const answer = pipe.read_answer(patience);
      CHECK(status_of(answer) == 200);
      CHECK((answer.find("Chorus-Duplicate: true") != std::string::npos) == was_applied);
      CHECK(answer.find("Chorus-Next-Sequence: " + next + "\r\n") != std::string::npos);
    }
    CHECK(versions(worker) == "\"1." + next + '"');
  }
  CHECK(pulled(w.cluster.worker(0), rows) == Floats{3, 6, 9, 12});
}

TEST_CASE("a body that breaks off inside the rows of an owner, and is sent again, counts once at both") {
  Owned w;
  auto const rows = many_rows();
  auto const gradient = counting(rows.size() * width);
  auto const body = body_of(rows, gradient);
  auto& gateway = w.cluster.worker(2);
  for (std::size_t const cut : {body.size() / 2, body.size() - 1}) {
    RawConnection pipe(gateway.port());
    pipe.send(head_of(0, rows.size(), with_length(body)) + body.substr(0, cut));
  }
  RawConnection pipe(gateway.port());
  pipe.send(head_of(0, rows.size(), with_length(body)) + body);
  CHECK(status_of(pipe.read_answer(patience)) == 200);
  CHECK(versions(gateway) == "\"1.1\"");
  CHECK((pulled(w.cluster.worker(0), rows) == gradient));
}

TEST_CASE("an owner takes rows in pieces, each again if it comes again, and refuses gaps and another length") {
  Owned w;
  Rows const rows{0, 3};
  auto const body = body_of(rows, {1, 2, 3, 4});
  ParameterClient const client(w.cluster.worker(0).url, "c");
  auto const piece = [&](std::size_t offset, std::size_t bytes, std::size_t of) {
    auto const at = "&offset=" + std::to_string(offset) + "&of=" + std::to_string(of);
    return client.post("/v1/parameters/w/rows/gradient?shard=0" + at, body.substr(offset, bytes),
                       {{"Chorus-Client", "c"}, {"Chorus-Sequence", "0"}, {"Chorus-Rows", "2"}});
  };
  CHECK(piece(8, 8, body.size()).code() == "out_of_order");
  CHECK(piece(0, 8, body.size() - 1).code() == "length_mismatch");
  CHECK(piece(0, 8, body.size() + 1).code() == "length_mismatch");
  CHECK(piece(0, 20, body.size()).status == 202);
  CHECK(piece(0, 20, body.size()).status == 202);
  CHECK(piece(24, 8, body.size()).code() == "out_of_order");
  CHECK(versions(w.cluster.worker(0)) == "\"1.0\"");
  CHECK(piece(20, body.size(), body.size()).status == 200);
  CHECK(pulled(w.cluster.worker(0), rows) == Floats{1, 2, 3, 4});
}

TEST_CASE("wrong row numbers change nothing at any owner, and neither does a body of another length") {
  Owned w;
  for (std::size_t i = 0; i < 3; ++i) {
    ParameterClient client(w.cluster.worker(i).url, "c" + std::to_string(i));
    auto const beyond = push(client, {0, 200'000, 400'000}, Floats(6, 1));
    CHECK(beyond.code() == "invalid_field");
    CHECK(beyond.body.find("/rows/2") != std::string::npos);
    CHECK(push(client, {200'000, 0}, Floats(4, 1)).code() == "invalid_field");
    CHECK(push(client, {0, 1, 200'000, 199'999}, Floats(8, 1)).code() == "invalid_field");
    auto many = many_rows();
    many.back() = 400'000;
    CHECK(push(client, many, Floats(many.size() * width, 1)).code() == "invalid_field");
    CHECK(push(client, {0, 200'000}, Floats(5, 1)).code() == "length_mismatch");
    CHECK(push(client, {0, 200'000}, Floats(3, 1)).code() == "length_mismatch");
    CHECK(versions(w.cluster.worker(2)) == "\"1.0\"");
  }
  ParameterClient client(w.cluster.worker(0).url, "c0");
  CHECK(push(client, {0}, {1, 2}).status == 200);
}

TEST_CASE("what needs the whole push is judged before an owner gets a part: NaN, and the norm") {
  auto const nan = std::numeric_limits<float>::quiet_NaN();
  Owned strict(R"(,"nonfinite":"reject")");
  Owned clipped(R"(,"optimizer":{"name":"sgd","learning_rate":1,"clip_norm":1})");
  for (std::size_t i = 0; i < 3; ++i) {
    ParameterClient client(strict.cluster.worker(i).url, "c" + std::to_string(i));
    CHECK(push(client, {0, 399'999}, {1, 2, 3, nan}).code() == "non_finite");
    CHECK(versions(strict.cluster.worker(2)) == "\"1.0\"");
  }
  // The norm of the push is 5; each step is a fifth of the gradient. A client may say the norm.
  float steps = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    ParameterClient client(clipped.cluster.worker(i).url, "c" + std::to_string(i));
    for (httplib::Headers const& headers : {httplib::Headers{}, httplib::Headers{{"Chorus-Gradient-Norm", "5"}}}) {
      CHECK(push(client, {0, 399'999}, {3, 0, 0, 4}, headers).status == 200);
      ++steps;
      auto const values = pulled(clipped.cluster.worker(2), {0, 399'999});
      CHECK(values[0] == doctest::Approx(-0.6 * steps));
      CHECK(values[3] == doctest::Approx(-0.8 * steps));
    }
  }
}

TEST_CASE("a push with a checksum that does not fit its body changes nothing at any owner") {
  Owned w;
  auto const body = body_of({0, 399'999}, {1, 2, 3, 4});
  auto changed = body;
  changed.back() = '\x7f';
  chorus::http::Fields fields;
  fields.set("Chorus-Client", "raw");
  fields.set("Chorus-Sequence", "0");
  fields.set("Chorus-Rows", "2");
  auto const checksum =
      chorus::http::checksum_of("POST /v1/parameters/w/rows/gradient", fields, std::as_bytes(std::span(body)));
  auto const head = head_of(0, 2, with_length(body) + "Chorus-Message-Crc32c: " + to_text(checksum) + "\r\n");
  for (std::size_t i = 0; i < 3; ++i) {
    RawConnection pipe(w.cluster.worker(i).port());
    pipe.send(head + changed);
    CHECK(pipe.read_answer(patience).find("digest_mismatch") != std::string::npos);
    CHECK(versions(w.cluster.worker(2)) == "\"1.0\"");
  }
  RawConnection pipe(w.cluster.worker(0).port());
  pipe.send(head + body);
  CHECK(status_of(pipe.read_answer(patience)) == 200);
  CHECK(pulled(w.cluster.worker(2), {0, 399'999}) == Floats{1, 2, 3, 4});
}
