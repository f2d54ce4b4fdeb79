#define CHORUS_KERNELS avx512_kernels
#define CHORUS_KERNELS_NAME "avx512"
#include "worker/devices/kernels.inc"
