// Loads a library double at run time, as the product does, and keeps it open, so that a test can control the double.
#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

namespace chorus::devices::testing {

class LoadedLibrary {
 public:
  explicit LoadedLibrary(char const* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(library_ != nullptr);
  }
  ~LoadedLibrary() { static_cast<void>(dlclose(library_)); }
  LoadedLibrary(LoadedLibrary const&) = delete;
  LoadedLibrary& operator=(LoadedLibrary const&) = delete;

  template <class Function>
  [[nodiscard]] Function& function(char const* name) const {
    auto* const found = dlsym(library_, name);
    REQUIRE(found != nullptr);
    return *reinterpret_cast<Function*>(found);
  }

 private:
  void* const library_;
};

}  // namespace chorus::devices::testing
