#include "worker/api/worker.hpp"

#include "worker/api/core/core.hpp"
#include "worker/memory/registered_memory.hpp"

namespace chorus {

Result<Worker> Worker::start(WorkerOptions options) {
  auto core = embedded::Core::start(std::move(options));
  if (core.has_error()) return core.error();
  return Worker(std::move(*core));
}

Worker::Worker(std::shared_ptr<embedded::Core> core) : core_(std::move(core)) {}

Worker::~Worker() {
  if (core_) core_->stop();
}

Worker::Worker(Worker&&) noexcept = default;

Worker& Worker::operator=(Worker&& other) noexcept {
  if (this == &other) return *this;
  if (core_) core_->stop();
  core_ = std::move(other.core_);
  return *this;
}

std::string const& Worker::id() const { return core_->identity().id; }
std::string const& Worker::url() const { return core_->identity().url; }

Result<JoinedGroup> Worker::join(std::string const& group, TimePoint deadline) {
  auto member = core_->join(group, deadline);
  if (member.has_error()) return member.error();
  return JoinedGroup(std::move(*member));
}

Result<JoinedGroup> Worker::create_group(std::string const& name, GroupOptions const& options, TimePoint deadline) {
  auto member = core_->create(name, options, deadline);
  if (member.has_error()) return member.error();
  return JoinedGroup(std::move(*member));
}

Status Worker::delete_group(std::string const& name, TimePoint deadline) { return core_->remove(name, deadline); }

Result<Worker::Memory> Worker::allocate_bytes(std::size_t bytes) { return core_->allocate(bytes); }

Worker::Registration::Registration(std::unique_ptr<memory::RegisteredMemory> memory) : memory_(std::move(memory)) {}
Worker::Registration::Registration(Registration&&) noexcept = default;
Worker::Registration& Worker::Registration::operator=(Registration&&) noexcept = default;
Worker::Registration::~Registration() = default;

Result<Worker::Registration> Worker::register_bytes(std::span<std::byte> bytes) {
  auto memory = core_->adopt(bytes);
  if (memory.has_error()) return memory.error();
  return Registration(std::move(*memory));
}

}  // namespace chorus
