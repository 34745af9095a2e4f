"""Figures as cells of Markdown tables."""
from . import figures

MIB = 2 ** 20


def plain(value):
    """A number as people read it: three digits count."""
    if value is None:
        return "–"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def with_spread(spread, unit=""):
    """"9,812 (9,102–10,400)"; one figure alone where all are equal or there is one."""
    if spread is None:
        return "–"
    middle, least, greatest = spread
    if plain(least) == plain(greatest):
        return plain(middle) + unit
    return f"{plain(middle)}{unit} ({plain(least)}–{plain(greatest)})"


def table(head, rows, text=False):
    """Figures stand to the right, `text` to the left."""
    marks = ["---"] + ["---" if text else "---:"] * (len(head) - 1)
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join(marks) + "|"]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def over(samples, key, scale=1.0):
    return figures.spread([sample[key] / scale for sample in samples if sample.get(key) is not None])


def milliseconds(samples, key):
    spread = over(samples, key, 1000.0)
    return "–" if spread is None else plain(spread[0])


def cpu(samples):
    """All of it, and how much of that is the database's."""
    whole, part = over(samples, "cpu_us"), over(samples, "cpu_us_database")
    text = with_spread(whole)
    return text if part is None or whole is None or part == whole else f"{text}, of it database {plain(part[0])}"


def threads(samples, least=0.2):
    """CPU µs per request of each thread of the program, the busiest first (hapax: the loop
    or the committer, then the keeper); medians over the rounds."""
    lists = [sample["threads_us"] for sample in samples if "threads_us" in sample]
    longest = max(map(len, lists), default=0)
    each = [figures.median([one[number] for one in lists if number < len(one)]) for number in range(longest)]
    return " + ".join(plain(value) for value in each if value >= least) or "–"


def others(samples):
    """Answers that were not the expected one, by status, and broken connections."""
    counts = {}
    for sample in samples:
        expected = max(sample["statuses"], key=sample["statuses"].get, default=None)
        for status, count in sample["statuses"].items():
            if sample["other"] and (status != expected or sample["other"] >= sample["requests"]):
                counts[status] = counts.get(status, 0) + count
    broken = sum(sample["broken"] for sample in samples)
    words = [f"{count:,} × {status}" for status, count in sorted(counts.items())]
    if broken:
        words.append(f"{broken:,} broken")
    return ", ".join(words) or "none"
