"""A worker in this process, by the C interface of libchorus.so.0; nothing is loaded until a `Worker` starts."""
