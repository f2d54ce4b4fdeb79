#include "worker/bench/hand_written.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace chorus::bench {

#if defined(__x86_64__)
namespace {

#define CHORUS_AVX2 __attribute__((target("avx2,f16c")))
#define CHORUS_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c")))

// One loop: LOAD two registers of BYTES, combine them, STORE. The address is of bytes.
#define CHORUS_LOOP(NAME, TARGET, ELEMENT_BYTES, STEP_BYTES, LOAD, COMBINE, STORE)                   \
  TARGET void NAME(std::byte* dst, std::byte const* a, std::byte const* b, std::uint64_t elements) { \
    for (std::uint64_t at = 0; at < elements * (ELEMENT_BYTES); at += (STEP_BYTES)) {                \
      auto const x = LOAD(a + at);                                                                   \
      auto const y = LOAD(b + at);                                                                   \
      STORE(dst + at, COMBINE(x, y));                                                                \
    }                                                                                                \
  }

CHORUS_AVX2 inline __m256 ps256(std::byte const* p) { return _mm256_loadu_ps(reinterpret_cast<float const*>(p)); }
CHORUS_AVX2 inline void store_ps256(std::byte* p, __m256 x) { _mm256_storeu_ps(reinterpret_cast<float*>(p), x); }
CHORUS_AVX2 inline __m256d pd256(std::byte const* p) { return _mm256_loadu_pd(reinterpret_cast<double const*>(p)); }
CHORUS_AVX2 inline void store_pd256(std::byte* p, __m256d x) { _mm256_storeu_pd(reinterpret_cast<double*>(p), x); }
CHORUS_AVX2 inline __m256i si256(std::byte const* p) { return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p)); }
CHORUS_AVX2 inline void store_si256(std::byte* p, __m256i x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
CHORUS_AVX2 inline __m256 f16_256(std::byte const* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p)));
}
CHORUS_AVX2 inline void store_f16_256(std::byte* p, __m256 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

CHORUS_AVX512 inline __m512 ps512(std::byte const* p) { return _mm512_loadu_ps(p); }
CHORUS_AVX512 inline void store_ps512(std::byte* p, __m512 x) { _mm512_storeu_ps(p, x); }
CHORUS_AVX512 inline __m512d pd512(std::byte const* p) { return _mm512_loadu_pd(p); }
CHORUS_AVX512 inline void store_pd512(std::byte* p, __m512d x) { _mm512_storeu_pd(p, x); }
CHORUS_AVX512 inline __m512i si512(std::byte const* p) { return _mm512_loadu_si512(p); }
CHORUS_AVX512 inline void store_si512(std::byte* p, __m512i x) { _mm512_storeu_si512(p, x); }
CHORUS_AVX512 inline __m512 f16_512(std::byte const* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(p)));
}
CHORUS_AVX512 inline void store_f16_512(std::byte* p, __m512 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
// bf16 is the upper half of an f32; rounded to nearest even, and a NaN stays one.
CHORUS_AVX512 inline __m512 bf16_512(std::byte const* p) {
  auto const halves = _mm256_loadu_si256(reinterpret_cast<__m256i const*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
CHORUS_AVX512 inline void store_bf16_512(std::byte* p, __m512 x) {
  auto const bits = _mm512_castps_si512(x);
  auto const odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  auto const rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  auto const quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  auto const either = _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(either, 16)));
}

CHORUS_LOOP(sum_f32_avx2, CHORUS_AVX2, 4, 32, ps256, _mm256_add_ps, store_ps256)
CHORUS_LOOP(sum_f64_avx2, CHORUS_AVX2, 8, 32, pd256, _mm256_add_pd, store_pd256)
CHORUS_LOOP(prod_f32_avx2, CHORUS_AVX2, 4, 32, ps256, _mm256_mul_ps, store_ps256)
CHORUS_LOOP(sum_i32_avx2, CHORUS_AVX2, 4, 32, si256, _mm256_add_epi32, store_si256)
CHORUS_LOOP(sum_i64_avx2, CHORUS_AVX2, 8, 32, si256, _mm256_add_epi64, store_si256)
CHORUS_LOOP(max_u8_avx2, CHORUS_AVX2, 1, 32, si256, _mm256_max_epu8, store_si256)
CHORUS_LOOP(bor_u64_avx2, CHORUS_AVX2, 8, 32, si256, _mm256_or_si256, store_si256)
CHORUS_LOOP(sum_f16_avx2, CHORUS_AVX2, 2, 16, f16_256, _mm256_add_ps, store_f16_256)

CHORUS_LOOP(sum_f32_avx512, CHORUS_AVX512, 4, 64, ps512, _mm512_add_ps, store_ps512)
CHORUS_LOOP(sum_f64_avx512, CHORUS_AVX512, 8, 64, pd512, _mm512_add_pd, store_pd512)
CHORUS_LOOP(prod_f32_avx512, CHORUS_AVX512, 4, 64, ps512, _mm512_mul_ps, store_ps512)
CHORUS_LOOP(sum_i32_avx512, CHORUS_AVX512, 4, 64, si512, _mm512_add_epi32, store_si512)
CHORUS_LOOP(sum_i64_avx512, CHORUS_AVX512, 8, 64, si512, _mm512_add_epi64, store_si512)
CHORUS_LOOP(max_u8_avx512, CHORUS_AVX512, 1, 64, si512, _mm512_max_epu8, store_si512)
CHORUS_LOOP(bor_u64_avx512, CHORUS_AVX512, 8, 64, si512, _mm512_or_si512, store_si512)
CHORUS_LOOP(sum_f16_avx512, CHORUS_AVX512, 2, 32, f16_512, _mm512_add_ps, store_f16_512)
CHORUS_LOOP(sum_bf16_avx512, CHORUS_AVX512, 2, 32, bf16_512, _mm512_add_ps, store_bf16_512)

#undef CHORUS_LOOP

}  // namespace

std::vector<HandWritten> hand_written_loops() {
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return {{ReduceOp::sum, Dtype::f32, sum_f32_avx512},   {ReduceOp::prod, Dtype::f32, prod_f32_avx512},
            {ReduceOp::sum, Dtype::f64, sum_f64_avx512},   {ReduceOp::sum, Dtype::f16, sum_f16_avx512},
            {ReduceOp::sum, Dtype::bf16, sum_bf16_avx512}, {ReduceOp::sum, Dtype::i32, sum_i32_avx512},
            {ReduceOp::sum, Dtype::i64, sum_i64_avx512},   {ReduceOp::max, Dtype::u8, max_u8_avx512},
            {ReduceOp::bor, Dtype::u64, bor_u64_avx512}};
  if (__builtin_cpu_supports("avx2"))
    return {{ReduceOp::sum, Dtype::f32, sum_f32_avx2}, {ReduceOp::prod, Dtype::f32, prod_f32_avx2},
            {ReduceOp::sum, Dtype::f64, sum_f64_avx2}, {ReduceOp::sum, Dtype::f16, sum_f16_avx2},
            {ReduceOp::sum, Dtype::i32, sum_i32_avx2}, {ReduceOp::sum, Dtype::i64, sum_i64_avx2},
            {ReduceOp::max, Dtype::u8, max_u8_avx2},   {ReduceOp::bor, Dtype::u64, bor_u64_avx2}};
  return {};
}

#else

std::vector<HandWritten> hand_written_loops() { return {}; }

#endif

}  // namespace chorus::bench
