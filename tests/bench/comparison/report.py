"""What is printed, and what --output writes. Tables are added as they are measured."""
import json
import os
import platform

from .tables import as_markdown, as_text


class Report:
    def __init__(self, directory):
        self._directory = directory
        self._markdown = []
        if directory:
            directory.mkdir(parents=True, exist_ok=True)
            self._rows = open(directory / "rows.jsonl", "w", encoding="utf-8")
            self.row({"kind": "machine", **machine()})
        self._chapter("This machine", ", ".join(f"{key}: {value}" for key, value in machine().items()))

    def _chapter(self, title, words):
        print(f"\n{title}\n{words}", flush=True)
        self._markdown.append(f"## {title}\n\n{words}\n")
        self._write()

    def row(self, row):
        if self._directory:
            self._rows.write(json.dumps(row) + "\n")
            self._rows.flush()

    def table(self, title, header, rows, remarks=()):
        print(f"\n{title}\n{as_text(header, rows)}")
        for remark in remarks:
            print(f"  {remark}")
        listed = "".join(f"\n- {remark}" for remark in remarks)
        self._markdown.append(f"## {title}\n\n{as_markdown(header, rows)}\n{listed}\n")
        self._write()

    def missing(self, title, why):
        self._chapter(title, f"missing: {why}")

    def picture(self, name, svg):
        if self._directory and svg:
            (self._directory / name).write_text(svg, encoding="utf-8")
            self._markdown.append(f"![]({name})\n")
            self._write()

    def _write(self):
        if self._directory:
            (self._directory / "report.md").write_text("\n".join(self._markdown), encoding="utf-8")


def machine():
    model = ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), "")
    except OSError:
        pass
    return {"cores": os.cpu_count(), "processor": model or platform.machine(), "kernel": platform.release()}
