"""``python -m chorus.torch``: compiles the extension, and prints where it is."""

from .build import build

print(build())
