"""Arrays on GPUs of CUDA, by way of memory of the host."""
