// Keeps the answers of requests that have a key. A repeated request gets the kept answer and is not carried out again.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/runtime/condition.hpp"
#include "http/message/idempotency_key.hpp"

namespace chorus::http {

// Used on the server's thread; outlives the requests. `Key` names a request; Answer is a value.
template <class Key, class Answer>
class KeptAnswers {
 public:
  // Number of answered requests that are kept, the latest ones; fewer if their answers are large.
  struct Limits {
    std::size_t answers = 1000;
    std::size_t bytes = 64 << 20;
  };
  KeptAnswers(boost::asio::any_io_executor executor, Limits limits) : executor_(std::move(executor)), limits_(limits) {}

  // One request from its beginning to its answer. `asked` is the content of the request: a different request under the
  // same key has other content.
  class Record : public std::enable_shared_from_this<Record> {
   public:
    Record(boost::asio::any_io_executor executor, std::string asked)
        : asked_(std::move(asked)), changed_(std::move(executor)) {}

    [[nodiscard]] std::string const& asked() const { return asked_; }
    // Waits for the answer. Empty: the request was given up.
    boost::asio::awaitable<std::optional<Answer>> answer() {
      auto const self = this->shared_from_this();
      while (!has_ended_) co_await changed_.wait_until(Condition::TimePoint::max());
      co_return answer_;
    }

   private:
    friend class KeptAnswers;
    std::string const asked_;
    bool has_ended_ = false;
    std::optional<Answer> answer_;
    Condition changed_;
  };
  using RecordPtr = std::shared_ptr<Record>;

  // Null: no request is known under this key.
  [[nodiscard]] RecordPtr find(Key const& key) const {
    auto const found = records_.find(key);
    return found == records_.end() ? nullptr : found->second;
  }

  // A new request while it is being answered. Destruction before end() means that the request was given up.
  class Answering {
   public:
    Answering(KeptAnswers& answers, Key key, std::string asked)
        : answers_(answers),
          key_(std::move(key)),
          record_(std::make_shared<Record>(answers.executor_, std::move(asked))) {
      answers_.records_.insert_or_assign(key_, record_);
    }
    ~Answering() {
      if (record_) answers_.end(key_, *record_, std::nullopt, std::nullopt);
    }
    Answering(Answering const&) = delete;
    Answering& operator=(Answering const&) = delete;

    // Called once. `bytes`: size of the answer. Without `bytes` only the requests that wait now get the answer, and the
    // key is free again.
    void end(Answer answer, std::optional<std::size_t> bytes) {
      auto const record = std::exchange(record_, nullptr);
      answers_.end(key_, *record, std::move(answer), bytes);
    }

   private:
    KeptAnswers& answers_;
    Key const key_;
    RecordPtr record_;
  };

 private:
  void end(Key const& key, Record& record, std::optional<Answer> answer, std::optional<std::size_t> bytes) {
    record.has_ended_ = true;
    record.answer_ = std::move(answer);
    record.changed_.notify_all();
    if (!bytes) {
      records_.erase(key);
      return;
    }
    ended_.push_back({key, *bytes});
    bytes_ += *bytes;
    while (ended_.size() > limits_.answers || bytes_ > limits_.bytes) {
      bytes_ -= ended_.front().bytes;
      records_.erase(ended_.front().key);
      ended_.pop_front();
    }
  }

  struct Ended {
    Key key;
    std::size_t bytes = 0;
  };

  boost::asio::any_io_executor executor_;
  Limits const limits_;
  std::map<Key, RecordPtr> records_;
  std::deque<Ended> ended_;  // oldest first
  std::size_t bytes_ = 0;    // sum over `ended_`
};

}  // namespace chorus::http
