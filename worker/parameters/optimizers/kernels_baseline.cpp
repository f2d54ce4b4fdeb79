#define CHORUS_STEP_KERNELS baseline_kernels
#define CHORUS_STEP_KERNELS_NAME "baseline"
#include "worker/parameters/optimizers/kernels.inc"
