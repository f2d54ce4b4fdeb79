// A worker in this process with a control thread of its own, and HTTP calls to it. The client is cpp-httplib, which is
// independent of the code under test.
#pragma once

#include <httplib.h>
#include <spdlog/sinks/ringbuffer_sink.h>

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "worker/service/worker.hpp"

namespace chorus::service::testing {

struct Answer {
  int status = 0;  // 0: no answer
  std::string body;
  httplib::Headers headers;
  [[nodiscard]] boost::json::value json() const { return boost::json::parse(body); }
  [[nodiscard]] std::string code() const;  // of the problem, or ""
  [[nodiscard]] std::string header(std::string const& name) const;
};

[[nodiscard]] WorkerOptions test_options(std::string id = "w0", std::uint64_t incarnation = 0x10);

class LiveWorker {
 public:
  explicit LiveWorker(WorkerOptions options = test_options(), devices::FoundGpus gpus = {{}, "a test has none"});
  ~LiveWorker();
  LiveWorker(LiveWorker const&) = delete;
  LiveWorker& operator=(LiveWorker const&) = delete;

  void stop();  // returns when the worker has stopped
  void report(api::Trouble trouble);
  void truncate_memory();              // as any process may that finds the file
  [[nodiscard]] std::string fenced();  // waits until a newer process has taken the name; returns the reason

  [[nodiscard]] Identity const& identity() const { return worker_->identity(); }
  [[nodiscard]] std::uint16_t port() const;

  Answer get(std::string const& path, httplib::Headers const& headers = {}) const;
  Answer head(std::string const& path, httplib::Headers const& headers = {}) const;
  Answer put(std::string const& path, std::string const& body, httplib::Headers const& headers = {},
             std::string const& type = "application/json") const;
  Answer post(std::string const& path, std::string const& body, httplib::Headers const& headers = {}) const;
  Answer erase(std::string const& path, httplib::Headers const& headers = {}) const;

  // Puts a tensor of u8, one element per byte.
  Answer put_bytes(std::string const& name, std::string const& bytes, httplib::Headers headers = {}) const;
  template <class T>
  Answer put_tensor(std::string const& name, std::string const& dtype, std::vector<T> const& values) const {
    return put("/v1/tensors/" + name,
               std::string(reinterpret_cast<char const*>(values.data()), values.size() * sizeof(T)),
               {{"Tensor-Dtype", dtype}, {"Tensor-Shape", std::to_string(values.size())}}, "application/octet-stream");
  }
  template <class T>
  std::vector<T> get_tensor(std::string const& name) const {
    auto const answer = get("/v1/tensors/" + name);
    std::vector<T> values(answer.body.size() / sizeof(T));
    std::copy_n(answer.body.data(), values.size() * sizeof(T), reinterpret_cast<char*>(values.data()));
    return values;
  }
  [[nodiscard]] std::uint64_t version_of(std::string const& name) const;  // 0 if it does not exist
  [[nodiscard]] std::string logged() const;                               // the last lines, one after the other
  [[nodiscard]] std::string metrics() const { return get("/metrics").body; }

 private:
  [[nodiscard]] httplib::Client client() const;

  boost::asio::io_context control_{1};
  std::promise<std::string> fenced_;
  std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> const log_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
  std::unique_ptr<Worker> worker_;
  std::thread thread_;
};

}  // namespace chorus::service::testing
