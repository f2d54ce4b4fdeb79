"""The plot: time over size, both logarithmic, a line per system, a panel per link and number of ranks. Pure."""
import math
from xml.sax.saxutils import escape

from .results import readable_size
from .tables import order_of

COLOURS = ["#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b"]
PANEL_WIDTH, PANEL_HEIGHT = 300, 240
LEFT, TOP, RIGHT, BOTTOM = 58, 30, 24, 36
LEGEND_HEIGHT = 34


def microseconds_text(value):
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if value >= limit:
            return f"{value / limit:g} {unit}"
    return f"{value:g} us"


def line(x1, y1, x2, y2, colour):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def text(x, y, words, anchor="middle", colour="#333", size=11):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">'
            f'{escape(words)}</text>')


class Panel:
    """Maps sizes and times of all panels, which share their axes, to places in one of them."""

    def __init__(self, left, top, cells):
        sizes = [cell.bytes for cell in cells]
        times = [time for cell in cells for time in cell.times.values()]
        self.left, self.top = left + LEFT, top + TOP
        self.width, self.height = PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT - TOP - BOTTOM
        self.sizes = (math.log(min(sizes)), max(math.log(max(sizes)), math.log(min(sizes)) + 1))
        self.times = (math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)) + 1e-9))

    def x(self, size):
        low, high = self.sizes
        return self.left + (math.log(size) - low) / (high - low) * self.width

    def y(self, time):
        low, high = self.times
        return self.top + (high - math.log10(time)) / (high - low) * self.height

    def frame(self, title, sizes):
        parts = [text(self.left + self.width / 2, self.top - 10, title, size=13)]
        for decade in range(self.times[0], self.times[1] + 1):
            place = self.y(10 ** decade)
            parts.append(line(self.left, place, self.left + self.width, place, "#ddd"))
            parts.append(text(self.left - 5, place + 4, microseconds_text(10.0 ** decade), "end"))
        for size in sizes[::max(1, math.ceil(len(sizes) / 4))]:
            parts.append(line(self.x(size), self.top, self.x(size), self.top + self.height, "#eee"))
            parts.append(text(self.x(size), self.top + self.height + 16, readable_size(size)))
        return parts

    def curve(self, points, colour):
        path = " ".join(f"{self.x(size):.1f},{self.y(time):.1f}" for size, time in points)
        dots = [f'<circle cx="{self.x(size):.1f}" cy="{self.y(time):.1f}" r="2.5" fill="{colour}"/>'
                for size, time in points]
        return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8"/>', *dots]


def legend(systems):
    parts = []
    for number, system in enumerate(systems):
        x = LEFT + number * 110
        parts.append(line(x, 18, x + 24, 18, COLOURS[number % len(COLOURS)]))
        parts.append(text(x + 30, 22, system, "start", size=13))
    return parts


def draw(cells):
    """An SVG; None where nothing was measured."""
    if not any(cell.times for cell in cells):
        return None
    systems = order_of(system for cell in cells for system in cell.times)
    links = list(dict.fromkeys(cell.link for cell in cells))
    ranks = sorted({cell.ranks for cell in cells})
    width, height = len(ranks) * PANEL_WIDTH, len(links) * PANEL_HEIGHT + LEGEND_HEIGHT
    parts = legend(systems)
    for row, link in enumerate(links):
        for column, p in enumerate(ranks):
            panel = Panel(column * PANEL_WIDTH, LEGEND_HEIGHT + row * PANEL_HEIGHT, cells)
            here = [cell for cell in cells if (cell.link, cell.ranks) == (link, p)]
            parts += panel.frame(f"{link}, p = {p}", [cell.bytes for cell in here])
            for number, system in enumerate(systems):
                points = [(cell.bytes, cell.times[system]) for cell in here if system in cell.times]
                if points:
                    parts += panel.curve(points, COLOURS[number % len(COLOURS)])
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')
