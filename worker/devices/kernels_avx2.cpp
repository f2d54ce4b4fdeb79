#define CHORUS_KERNELS avx2_kernels
#define CHORUS_KERNELS_NAME "avx2"
#include "worker/devices/kernels.inc"
