// What the loops of hand_written.inc need of AVX-512.
#include <immintrin.h>

#include "worker/bench/hand_written.hpp"

namespace chorus::bench {
namespace {

#define CHORUS_MM(NAME) _mm512_##NAME
using Integers = __m512i;
using Singles = __m512;
using Doubles = __m512d;

inline Integers load(std::byte const* p) { return _mm512_load_si512(p); }
inline void store(std::byte* p, Integers x) { _mm512_store_si512(p, x); }
inline void stream(std::byte* p, Integers x) { _mm512_stream_si512(reinterpret_cast<__m512i*>(p), x); }
inline Integers as_integers(Singles x) { return _mm512_castps_si512(x); }
inline Integers as_integers(Doubles x) { return _mm512_castpd_si512(x); }
inline Singles as_singles(Integers x) { return _mm512_castsi512_ps(x); }
inline Doubles as_doubles(Integers x) { return _mm512_castsi512_pd(x); }
inline Integers every_long(long long x) { return _mm512_set1_epi64(x); }
inline Integers bit_and(Integers x, Integers y) { return _mm512_and_si512(x, y); }
inline Integers bit_or(Integers x, Integers y) { return _mm512_or_si512(x, y); }
inline Integers bit_xor(Integers x, Integers y) { return _mm512_xor_si512(x, y); }
// `x` where it is a NaN, otherwise `other`.
inline Singles nan_or(Singles x, Singles other) {
  return _mm512_mask_mov_ps(other, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), x);
}
inline Doubles nan_or(Doubles x, Doubles other) {
  return _mm512_mask_mov_pd(other, _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q), x);
}
inline Integers nan_or(Singles x, Integers quiet, Integers other) {
  return _mm512_mask_mov_epi32(other, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet);
}
inline Integers negative_where(Integers x, Integers value) {  // bytes
  return _mm512_mask_sub_epi8(value, _mm512_movepi8_mask(x), _mm512_setzero_si512(), value);
}
inline Integers sign_epi64(Integers x) { return _mm512_srai_epi64(x, 63); }
inline Integers odd_words(Integers even, Integers odd) { return _mm512_mask_mov_epi32(even, 0xaaaa, odd); }
inline Integers odd_halves(Integers even, Integers odd) { return _mm512_mask_mov_epi16(even, 0xaaaaaaaa, odd); }

inline Singles widen(std::byte const* p) {
  return _mm512_maskz_cvtph_ps(0xffff, _mm256_load_si256(reinterpret_cast<__m256i const*>(p)));
}
template <bool streams>
void narrow(std::byte* p, Singles x) {
  auto const halves = _mm512_maskz_cvtps_ph(0xffff, x, _MM_FROUND_TO_NEAREST_INT);
  if constexpr (streams)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(p), halves);
  else
    _mm256_store_si256(reinterpret_cast<__m256i*>(p), halves);
}

}  // namespace
}  // namespace chorus::bench

#include "worker/bench/hand_written.inc"

namespace chorus::bench {

HandWrittenTable hand_written_avx512() { return {table, sizeof table / sizeof table[0]}; }

}  // namespace chorus::bench
