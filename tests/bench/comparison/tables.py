"""Tables as text and as Markdown. Pure."""
from .results import OWN, best_peer, ratio, ratio_range, readable_size
from .targets import describe, mark

LEFT = {"link", "size", "best peer", "what", "unit"}


def time_text(microseconds):
    """Three digits that count, in microseconds."""
    if microseconds >= 100:
        return f"{microseconds:.0f}"
    return f"{microseconds:.1f}" if microseconds >= 10 else f"{microseconds:.2f}"


def ratio_text(value):
    return "-" if value is None else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def all_reduce_table(cells, systems, cores):
    """Header and rows, all of them text."""
    header = ["link", "p", "size", *[f"{system} us" for system in systems], "best peer", "ratio", "rounds", "target",
              "reached"]
    rows = []
    for cell in cells:
        spread = ratio_range(cell)
        rows.append([
            cell.link, str(cell.ranks), readable_size(cell.bytes),
            *[time_text(cell.times[system]) if system in cell.times else "-" for system in systems],
            best_peer(cell) or "-", ratio_text(ratio(cell)),
            "-" if spread is None else f"{ratio_text(spread[0])}..{ratio_text(spread[1])}",
            describe(cell, cores), mark(cell, cores)])
    return header, rows


def notes(cells, systems):
    """Why figures are missing: each reason once, with the cells that it concerns."""
    reasons = {}
    for cell in cells:
        for system, reason in cell.missing.items():
            reasons.setdefault((systems.index(system), system, cell.link, reason), []).append(cell)
    return [f"{system} over {link}, " + places(concerned) + f": {reason}"
            for (_, system, link, reason), concerned in sorted(reasons.items(), key=lambda item: item[0][:3])]


def places(cells):
    ranks = sorted({cell.ranks for cell in cells})
    sizes = sorted({cell.bytes for cell in cells})
    return f"p = {', '.join(map(str, ranks))}, {', '.join(map(readable_size, sizes))}"


def as_text(header, rows):
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = []
    for row in [header, *rows]:
        padded = [text.ljust(width) if name in LEFT else text.rjust(width)
                  for text, width, name in zip(row, widths, header)]
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def as_markdown(header, rows):
    def line(fields):
        return "| " + " | ".join(fields) + " |"
    rule = [":--" if name in LEFT else "--:" for name in header]
    return "\n".join(map(line, [header, rule, *rows]))


def order_of(systems):
    """Chorus first, the others by name."""
    return sorted(set(systems), key=lambda system: (system != OWN, system))
