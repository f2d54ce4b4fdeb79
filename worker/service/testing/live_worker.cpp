#include "worker/service/testing/live_worker.hpp"

#include <spdlog/logger.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <charconv>
#include <stdexcept>

#include "http/client/client.hpp"

namespace chorus::service::testing {
namespace {

Answer to_answer(httplib::Result const& result) {
  if (!result) return {};
  return {result->status, result->body, result->headers};
}

}  // namespace

std::string Answer::code() const {
  boost::json::error_code failure;
  auto const value = boost::json::parse(body, failure);
  if (failure || !value.is_object() || !value.as_object().contains("code")) return "";
  return std::string(value.at("code").as_string());
}

std::string Answer::header(std::string const& name) const {
  auto const found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

WorkerOptions test_options(std::string id, std::uint64_t incarnation) {
  WorkerOptions options;
  options.port = 0;
  options.id = std::move(id);
  options.incarnation = incarnation;
  options.host_name = "testhost";
  options.tensor_limit_bytes = 8 << 20;
  options.memory_limit_bytes = 256 << 20;
  options.drain_timeout = std::chrono::milliseconds(200);
  options.nccl_library = "libno-such-nccl.so.2";  // the real NCCL does not know the doubles
  return options;
}

LiveWorker::LiveWorker(WorkerOptions options, devices::FoundGpus gpus) {
  auto const log = std::make_shared<spdlog::logger>("worker", log_);
  worker_ = std::make_unique<Worker>(control_, std::move(options), std::move(gpus), log,
                                     [this](std::string const& why) { fenced_.set_value(why); });
  if (auto const opened = worker_->open(); !opened) throw std::runtime_error(opened.error().detail);
  thread_ = std::thread([this] { control_.run(); });
}

LiveWorker::~LiveWorker() {
  if (thread_.joinable()) stop();
}

void LiveWorker::stop() {
  boost::asio::co_spawn(control_, worker_->stop(), boost::asio::use_future).get();
  thread_.join();
}

void LiveWorker::truncate_memory() {
  constexpr off_t left = 4096;
  if (ftruncate(worker_->arena()->mapping().descriptor(), left) != 0) throw std::runtime_error("ftruncate");
}

void LiveWorker::report(api::Trouble trouble) {
  boost::asio::post(control_, [this, trouble = std::move(trouble)]() mutable { worker_->report(std::move(trouble)); });
}

std::string LiveWorker::fenced() { return fenced_.get_future().get(); }

std::uint16_t LiveWorker::port() const { return http::parse_url(identity().url).value().port; }

httplib::Client LiveWorker::client() const {
  httplib::Client client("127.0.0.1", port());
  client.set_read_timeout(30);
  return client;
}

Answer LiveWorker::get(std::string const& path, httplib::Headers const& headers) const {
  return to_answer(client().Get(path, headers));
}

Answer LiveWorker::head(std::string const& path, httplib::Headers const& headers) const {
  return to_answer(client().Head(path, headers));
}

Answer LiveWorker::put(std::string const& path, std::string const& body, httplib::Headers const& headers,
                       std::string const& type) const {
  return to_answer(client().Put(path, headers, body, type));
}

Answer LiveWorker::post(std::string const& path, std::string const& body, httplib::Headers const& headers) const {
  return to_answer(client().Post(path, headers, body, "application/json"));
}

Answer LiveWorker::erase(std::string const& path, httplib::Headers const& headers) const {
  return to_answer(client().Delete(path, headers));
}

Answer LiveWorker::put_bytes(std::string const& name, std::string const& bytes, httplib::Headers headers) const {
  headers.emplace("Tensor-Dtype", "u8");
  headers.emplace("Tensor-Shape", std::to_string(bytes.size()));
  return put("/v1/tensors/" + name, bytes, headers, "application/octet-stream");
}

std::string LiveWorker::logged() const {
  std::string lines;
  for (auto const& line : log_->last_formatted()) lines += line;
  return lines;
}

std::uint64_t LiveWorker::version_of(std::string const& name) const {
  auto const text = head("/v1/tensors/" + name).header("Tensor-Version");
  std::uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace chorus::service::testing
