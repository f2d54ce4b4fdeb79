#include <mutex>

#include "library/arguments.hpp"
#include "library/border.hpp"

using namespace chorus::library;

namespace {

constexpr std::size_t first_worker_info = 24;

}  // namespace

chorus_status_t chorus_worker_start(chorus_worker_options_t const* options, chorus_worker_t** worker,
                                    chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (worker == nullptr) return bad_argument(error, "worker is NULL: there is nowhere to put the new one");
    *worker = nullptr;
    auto to = to_worker_options(options);
    if (to.has_error()) return tell(error, to.error());
    auto started = chorus::Worker::start(std::move(*to));
    if (started.has_error()) return tell(error, started.error());
    *worker = new chorus_worker(std::move(*started));
    return CHORUS_OK;
  });
}

chorus_status_t chorus_worker_stop(chorus_worker_t* worker, chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (worker == nullptr) return bad_argument(error, "worker is NULL");
    std::lock_guard const lock(worker->stopping);
    worker->worker.reset();
    return CHORUS_OK;
  });
}

void chorus_worker_free(chorus_worker_t* worker) {
  static_cast<void>(chorus_worker_stop(worker, nullptr));
  delete worker;
}

chorus_status_t chorus_worker_describe(chorus_worker_t const* worker, chorus_worker_info_t* info,
                                       chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (worker == nullptr) return bad_argument(error, "worker is NULL");
    chorus_worker_info_t const filled{0, worker->id.c_str(), worker->url.c_str()};
    auto const written = write_sized(info, filled, first_worker_info, "chorus_worker_info_t");
    if (written.has_error()) return tell(error, written.error());
    return CHORUS_OK;
  });
}

chorus_status_t chorus_memory_allocate(chorus_worker_t* worker, size_t bytes, chorus_memory_t** memory,
                                       chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (worker == nullptr) return bad_argument(error, "worker is NULL");
    if (memory == nullptr) return bad_argument(error, "memory is NULL: there is nowhere to put the new one");
    *memory = nullptr;
    return with_worker(*worker, error, [&](chorus::Worker& running) -> chorus_status_t {
      auto block = running.allocate_bytes(bytes);
      if (block.has_error()) return tell(error, block.error());
      *memory = new chorus_memory{block->bytes, std::move(block->owner)};
      return CHORUS_OK;
    });
  });
}

chorus_status_t chorus_memory_register(chorus_worker_t* worker, void* data, size_t bytes, chorus_memory_t** memory,
                                       chorus_error_t* error) {
  return guarded(error, [&]() -> chorus_status_t {
    if (worker == nullptr) return bad_argument(error, "worker is NULL");
    if (memory == nullptr) return bad_argument(error, "memory is NULL: there is nowhere to put the new one");
    *memory = nullptr;
    if (data == nullptr) return bad_argument(error, "data is NULL");
    return with_worker(*worker, error, [&](chorus::Worker& running) -> chorus_status_t {
      std::span const span(static_cast<std::byte*>(data), bytes);
      auto registration = running.register_bytes(span);
      if (registration.has_error()) return tell(error, registration.error());
      *memory = new chorus_memory{span, std::move(*registration)};
      return CHORUS_OK;
    });
  });
}

void* chorus_memory_data(chorus_memory_t const* memory) { return memory != nullptr ? memory->bytes.data() : nullptr; }

size_t chorus_memory_bytes(chorus_memory_t const* memory) { return memory != nullptr ? memory->bytes.size() : 0; }

void chorus_memory_free(chorus_memory_t* memory) { delete memory; }
