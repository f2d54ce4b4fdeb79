#include <doctest/doctest.h>

#include "collectives/core/dtype.hpp"
#include "collectives/core/errc.hpp"
#include "collectives/core/gpu_locality.hpp"
#include "collectives/core/locality.hpp"
#include "collectives/core/op.hpp"
#include "collectives/core/reduce_op.hpp"

using namespace chorus;

TEST_CASE("the names of dtypes, reduce ops and operations parse back to their values") {
  for (auto dtype : all_dtypes) CHECK(parse_dtype(name(dtype)) == dtype);
  for (auto op : all_reduce_ops) CHECK(parse_reduce_op(name(op)) == op);
  for (auto op : all_ops) CHECK(parse_op(name(op)) == op);
  CHECK(parse_dtype("F32") == std::nullopt);
  CHECK(parse_op("") == std::nullopt);
}

TEST_CASE("a level is shared only if every level around it is shared") {
  Locality const here{"eu", "z1", "r1", "h1"};
  CHECK(shared_level(here, here) == Level::host);
  CHECK(shared_level(here, {"eu", "z1", "r1", "h2"}) == Level::rack);
  CHECK(shared_level(here, {"eu", "z1", "r2", "h1"}) == Level::zone);
  CHECK(shared_level(here, {"eu", "z2", "r1", "h1"}) == Level::region);
  CHECK(shared_level(here, {"us", "z1", "r1", "h1"}) == Level::world);
}

TEST_CASE("parse_locality reads what to_string writes, with keys in any order") {
  Locality const locality{"eu", "z1", "r7", "h3"};
  CHECK(parse_locality(to_string(locality)).value() == locality);
  CHECK(parse_locality("host=h3,zone=z1,rack=r7,region=eu").value() == locality);
  CHECK(parse_locality("").value() == Locality{});
}

TEST_CASE("the refusal of a mistyped locality names the wrong part") {
  CHECK(parse_locality("hots=h3").error().code == PlanErrc::bad_parameter);
  CHECK(parse_locality("hots=h3").error().detail.find("hots=h3") != std::string::npos);
  CHECK(parse_locality("host").has_error());
  CHECK(parse_locality("host=a,host=b").has_error());
  CHECK(parse_locality("host=a,,rack=b").has_error());
}

TEST_CASE("the UUID of a GPU and a PCI address have one form each") {
  CHECK(is_gpu_uuid("GPU-8e7d2b3c-0123-4567-89ab-cdef00000001"));
  for (auto const* text :
       {"", "GPU-", "GPU-8e7d2b3c", "8e7d2b3c-0123-4567-89ab-cdef00000001", "GPU-8e7d2b3c-0123-4567-89ab-cdef0000000",
        "GPU-8e7d2b3c-0123-4567-89ab-cdef000000011", "GPU-8E7D2B3C-0123-4567-89ab-cdef00000001",
        "GPU-8e7d2b3c-0123-4567-89ab_cdef00000001", "MIG-8e7d2b3c-0123-4567-89ab-cdef00000001"})
    CHECK_FALSE(is_gpu_uuid(text));
  for (auto const* text : {"0000:17:00.0", "00000000:17:00.0", "e4a41:00:1f.7"}) CHECK(is_pci_address(text));
  for (auto const* text : {"", "17:00.0", "000:17:00.0", "000000000:17:00.0", "0000:17:00", "0000:17:00.00",
                           "0000:1G:00.0", "0000:FF:00.0", "0000-17:00.0"})
    CHECK_FALSE(is_pci_address(text));
}
