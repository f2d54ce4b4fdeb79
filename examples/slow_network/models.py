"""Two models in numpy, whose parameters are one vector: the digits, and the next character of a text."""

from __future__ import annotations

import gzip
import pathlib

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Perceptron:
    """A hidden layer of rectified units and a softmax. `loss` adds the gradient for what it gets as input."""

    def __init__(self, inputs: int, hidden: int, classes: int, others: int = 0) -> None:
        shapes = [(inputs, hidden), (1, hidden), (hidden, classes), (1, classes)]
        sizes = [rows * columns for rows, columns in shapes]
        self.vector = numpy.zeros(others + sum(sizes), "f4")
        self.gradient = numpy.zeros_like(self.vector)
        ends = others + numpy.cumsum([0, *sizes])
        parts = list(zip(ends, ends[1:], shapes))
        self.weights = [self.vector[begin:end].reshape(shape) for begin, end, shape in parts]
        self.gradients = [self.gradient[begin:end].reshape(shape) for begin, end, shape in parts]
        drawn = numpy.random.default_rng(1)
        for weights in self.weights[::2]:
            weights[:] = drawn.normal(0, 1 / numpy.sqrt(len(weights)), weights.shape)

    def loss(self, x: numpy.ndarray, classes: numpy.ndarray) -> tuple[float, numpy.ndarray]:
        """The mean loss, and its gradient for x; that for the weights is left in `gradients`."""
        first, first_bias, second, second_bias = self.weights
        hidden = numpy.maximum(x @ first + first_bias, 0)
        logits = hidden @ second + second_bias
        logits -= logits.max(axis=1, keepdims=True)
        logits -= numpy.log(numpy.exp(logits).sum(axis=1, keepdims=True))
        rows = numpy.arange(len(x))
        error = numpy.exp(logits)
        error[rows, classes] -= 1
        error /= len(x)
        of_hidden = (error @ second.T) * (hidden > 0)
        for gradient, value in zip(
            self.gradients, (x.T @ of_hidden, of_hidden.sum(axis=0), hidden.T @ error, error.sum(axis=0))
        ):
            gradient[:] = value
        return float(-logits[rows, classes].mean()), of_hidden @ first.T


class Digits:
    """Images of 8 x 8 pixels and their digits (examples/data). A token is an image; every fifth is held out."""

    batch, rate = 32, 0.003

    def __init__(self) -> None:
        lines = gzip.decompress((ROOT / "examples/data/digits.csv.gz").read_bytes()).decode().split()
        table = numpy.array([line.split(",") for line in lines], "f4")
        table = table[numpy.random.default_rng(0).permutation(len(table))]
        self.pixels, self.labels = table[:, :-1] / 16, table[:, -1].astype("i8")
        self.held_out = numpy.arange(0, len(table), 5)
        self.trained = numpy.setdiff1d(numpy.arange(len(table)), self.held_out)
        self.net = Perceptron(64, 256, 10)
        self.vector, self.gradient = self.net.vector, self.net.gradient

    def step(self, step: int, rank: int) -> None:
        """Leaves the gradient of this rank's batch of the step in `gradient`."""
        chosen = self.trained[numpy.random.default_rng((step, rank)).integers(len(self.trained), size=self.batch)]
        self.net.loss(self.pixels[chosen], self.labels[chosen])

    def held_out_loss(self) -> float:
        return self.net.loss(self.pixels[self.held_out], self.labels[self.held_out])[0]


class Characters:
    """Predicts a character of this repository's documentation from those before it. The last tenth is held out."""

    batch, rate, context, width = 128, 0.006, 8, 16

    def __init__(self) -> None:
        pages = sorted((ROOT / "docs/explanation").rglob("*.md")) + sorted((ROOT / "docs/guides").rglob("*.md"))
        text = numpy.frombuffer(b"\n".join(page.read_bytes() for page in pages), "u1")
        known, self.text = numpy.unique(text, return_inverse=True)
        self.held_out_begin = len(self.text) * 9 // 10
        table = len(known) * self.width
        self.net = Perceptron(self.context * self.width, 256, len(known), others=table)
        self.vector, self.gradient = self.net.vector, self.net.gradient
        self.embedding = self.vector[:table].reshape(len(known), self.width)
        self.of_embedding = self.gradient[:table].reshape(len(known), self.width)
        self.one_hot = numpy.eye(len(known), dtype="f4")
        self.embedding[:] = numpy.random.default_rng(2).normal(0, 1, self.embedding.shape)

    def _loss(self, places: numpy.ndarray) -> float:
        before = self.text[places[:, None] + numpy.arange(self.context)]
        x = self.embedding[before].reshape(len(places), -1)
        loss, of_x = self.net.loss(x, self.text[places + self.context])
        self.of_embedding[:] = self.one_hot[before.ravel()].T @ of_x.reshape(-1, self.width)
        return loss

    def step(self, step: int, rank: int) -> None:
        """Leaves the gradient of this rank's batch of the step in `gradient`."""
        end = self.held_out_begin - self.context
        self._loss(numpy.random.default_rng((step, rank)).integers(end, size=self.batch))

    def held_out_loss(self) -> float:
        return self._loss(numpy.linspace(self.held_out_begin, len(self.text) - self.context - 1, 4000).astype("i8"))


MODELS = {"digits": Digits, "characters": Characters}


class Adam:
    """Adam with bias correction, over a vector."""

    def __init__(self, size: int, rate: float) -> None:
        self.rate, self.steps = rate, 0
        self.first, self.second = numpy.zeros(size, "f4"), numpy.zeros(size, "f4")

    def step(self, vector: numpy.ndarray, gradient: numpy.ndarray) -> None:
        self.steps += 1
        self.first += 0.1 * (gradient - self.first)
        self.second += 0.001 * (gradient * gradient - self.second)
        first = self.first / (1 - 0.9**self.steps)
        second = self.second / (1 - 0.999**self.steps)
        vector -= self.rate * first / (numpy.sqrt(second) + 1e-8)
