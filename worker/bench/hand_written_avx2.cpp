// What the loops of hand_written.inc need of AVX2.
#include <immintrin.h>

#include "worker/bench/hand_written.hpp"

namespace chorus::bench {
namespace {

#define CHORUS_MM(NAME) _mm256_##NAME
using Integers = __m256i;
using Singles = __m256;
using Doubles = __m256d;

inline Integers load(std::byte const* p) { return _mm256_load_si256(reinterpret_cast<__m256i const*>(p)); }
inline void store(std::byte* p, Integers x) { _mm256_store_si256(reinterpret_cast<__m256i*>(p), x); }
inline void stream(std::byte* p, Integers x) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), x); }
inline Integers as_integers(Singles x) { return _mm256_castps_si256(x); }
inline Integers as_integers(Doubles x) { return _mm256_castpd_si256(x); }
inline Singles as_singles(Integers x) { return _mm256_castsi256_ps(x); }
inline Doubles as_doubles(Integers x) { return _mm256_castsi256_pd(x); }
inline Integers every_long(long long x) { return _mm256_set1_epi64x(x); }
inline Integers bit_and(Integers x, Integers y) { return _mm256_and_si256(x, y); }
inline Integers bit_or(Integers x, Integers y) { return _mm256_or_si256(x, y); }
inline Integers bit_xor(Integers x, Integers y) { return _mm256_xor_si256(x, y); }
// `x` where it is a NaN, otherwise `other`.
inline Singles nan_or(Singles x, Singles other) {
  return _mm256_blendv_ps(other, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}
inline Doubles nan_or(Doubles x, Doubles other) {
  return _mm256_blendv_pd(other, x, _mm256_cmp_pd(x, x, _CMP_UNORD_Q));
}
inline Integers nan_or(Singles x, Integers quiet, Integers other) {
  return as_integers(_mm256_blendv_ps(as_singles(other), as_singles(quiet), _mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
}
inline Integers negative_where(Integers x, Integers value) {
  return _mm256_sign_epi8(value, x);
}  // bytes; x = 0: value = 0
inline Integers sign_epi64(Integers x) { return _mm256_cmpgt_epi64(_mm256_setzero_si256(), x); }
inline Integers odd_words(Integers even, Integers odd) { return _mm256_blend_epi32(even, odd, 0xaa); }
inline Integers odd_halves(Integers even, Integers odd) { return _mm256_blend_epi16(even, odd, 0xaa); }

inline Singles widen(std::byte const* p) {
  return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<__m128i const*>(p)));
}
template <bool streams>
void narrow(std::byte* p, Singles x) {
  auto const halves = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  if constexpr (streams)
    _mm_stream_si128(reinterpret_cast<__m128i*>(p), halves);
  else
    _mm_store_si128(reinterpret_cast<__m128i*>(p), halves);
}

}  // namespace
}  // namespace chorus::bench

#include "worker/bench/hand_written.inc"

namespace chorus::bench {

HandWrittenTable hand_written_avx2() { return {table, sizeof table / sizeof table[0]}; }

}  // namespace chorus::bench
