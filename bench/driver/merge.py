"""python3 -m driver report FILE.json...: one report of several runs. A ratio is of one
round of one run, also here: rounds of different files have different numbers."""
import json
import pathlib
import sys

from . import report
from .settings import Mistake

SERIES = ("samples", "limits", "starts")


def merged(results):
    """One result of several; what describes the machine is the first one's."""
    whole = {**results[0], "failures": [], "systems": {}, **{name: [] for name in SERIES}}
    offset = 0
    for result in results:
        for name in SERIES:
            whole[name] += [{**one, "round": one["round"] + offset} for one in result.get(name, [])]
        for name, about in result["systems"].items():
            if name not in whole["systems"] or "missing" in whole["systems"][name]:
                whole["systems"][name] = about
        whole["failures"] += result["failures"]
        offset += result["settings"]["runs"]
    return whole


def main(paths):
    if not paths:
        raise Mistake("report: give the .json files of one or more runs")
    try:
        results = [json.loads(pathlib.Path(path).read_text(encoding="utf-8")) for path in paths]
    except (OSError, ValueError) as error:
        raise Mistake(f"report: {error}") from error
    sys.stdout.write(report.markdown(merged(results), {}))
    return 0
