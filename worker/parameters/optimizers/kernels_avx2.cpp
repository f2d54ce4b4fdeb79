#define CHORUS_STEP_KERNELS avx2_kernels
#define CHORUS_STEP_KERNELS_NAME "avx2"
#include "worker/parameters/optimizers/kernels.inc"
