#define CHORUS_KERNELS baseline_kernels
#define CHORUS_KERNELS_NAME "baseline"
#include "worker/devices/kernels.inc"
