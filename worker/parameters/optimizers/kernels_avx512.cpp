#define CHORUS_STEP_KERNELS avx512_kernels
#define CHORUS_STEP_KERNELS_NAME "avx512"
#include "worker/parameters/optimizers/kernels.inc"
