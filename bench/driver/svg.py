"""A small drawing of charts as SVG: bars in groups, and lines. Plain text, no fonts
of its own, readable on light and dark pages."""
import html
import math

WIDTH, HEIGHT = 860, 400
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 64, 84
LEGEND_COLUMNS = 4
COLOURS = ["#8a8f98", "#1f6feb", "#58a6ff", "#0b7a75", "#d97706", "#c2410c", "#a21caf", "#65a30d", "#475569"]
STYLE = ("text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-size:15px;font-weight:600}"
         ".panel{fill:#ffffff}.axis{stroke:#8c959f}.grid{stroke:#8c959f;stroke-opacity:.25}"
         ".whisker{stroke:#24292f;stroke-opacity:.7}@media (prefers-color-scheme:dark){text{fill:#b1bac4}"
         ".panel{fill:#0d1117}.whisker{stroke:#e6edf3}}")


def text(x, y, words, anchor="middle", kind=""):
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{mark}>{html.escape(str(words))}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def round_up(value):
    """The next of 1, 2, 2.5, 5 and 10 times a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value * 0.999999)


def short(value):
    """As short as it can be read: 12k, 1.5M, 0.25."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


class Scale:
    """From values to a length, linear or by powers of ten."""

    def __init__(self, low, high, begin, end, log=False):
        self.log = log
        if log:
            low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
            high = high if high > low else low * 10
        self.low, self.high, self.begin, self.end = low, high, begin, end

    def at(self, value):
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / ((self.high - self.low) or 1)
        return self.begin + share * (self.end - self.begin)

    def marks(self):
        if self.log:
            count = round(math.log10(self.high / self.low))
            return [self.low * 10.0 ** n for n in range(count + 1)]
        return [self.low + (self.high - self.low) * n / 5 for n in range(6)]


def frame(title, y_title, scale, parts, legend):
    """The picture around whatever was drawn; `legend` is [(name, colour)]."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
           f'height="{HEIGHT}" role="img"><title>{html.escape(title)}</title><style>{STYLE}</style>',
           f'<rect width="{WIDTH}" height="{HEIGHT}" rx="8" class="panel"/>',
           text(LEFT, 22, title, "start", "title"), text(LEFT, 56, y_title, "start")]
    for mark in scale.marks():
        y = scale.at(mark)
        out += [line(LEFT, y, WIDTH - RIGHT, y, "grid"), text(LEFT - 6, y + 4, short(mark), "end")]
    out.append(line(LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT, HEIGHT - BOTTOM, "axis"))
    return "\n".join(out + parts + keys(legend) + ["</svg>"]) + "\n"


def keys(legend):
    """Which colour is what, below the picture, in columns."""
    out = []
    step = (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS
    for index, (name, colour) in enumerate(legend):
        x = LEFT + (index % LEGEND_COLUMNS) * step
        y = HEIGHT - BOTTOM + 38 + (index // LEGEND_COLUMNS) * 16
        out += [f'<rect x="{x:.1f}" y="{y - 9:.1f}" width="10" height="10" fill="{colour}"/>',
                text(x + 14, y, name, "start")]
    return out


def coloured(names, colours):
    """[(name, colour)]: those given, or one after the other."""
    return [(name, (colours or {}).get(name, COLOURS[index % len(COLOURS)])) for index, name in enumerate(names)]


def bars(title, y_title, groups, names, colours=None, log=False):
    """`groups` is [(name, [(median, least, greatest) or None, ...])], one value for each of `names`."""
    values = [value for _, row in groups for value in row if value is not None]
    high = max((value[2] for value in values), default=1)
    low = min((value[1] for value in values if value[1] > 0), default=1) if log else 0
    scale = Scale(low, high if log else round_up(high), HEIGHT - BOTTOM, TOP, log)
    legend = coloured(names, colours)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(groups))
    width = step * 0.8 / max(1, len(names))
    parts = []
    for number, (group, row) in enumerate(groups):
        begin = LEFT + number * step
        parts.append(text(begin + step / 2, HEIGHT - BOTTOM + 16, group))
        for index, value in enumerate(row):
            if value is not None:
                parts += bar(begin + step * 0.1 + index * width, width, value, scale, legend[index][1])
    return frame(title, y_title, scale, parts, legend)


def bar(x, width, value, scale, colour):
    """One, with a whisker from the least to the greatest."""
    middle, least, greatest = value
    top = scale.at(middle)
    return [f'<rect x="{x:.1f}" y="{top:.1f}" width="{width * 0.9:.1f}" height="{scale.begin - top:.1f}" '
            f'fill="{colour}"><title>{short(middle)}</title></rect>',
            line(x + width * 0.45, scale.at(least), x + width * 0.45, scale.at(greatest), "whisker")]


def lines(title, y_title, series, labels, colours=None, log=False):
    """`series` is [(name, [y or None, ...])]; `labels` are the marks below, evenly apart."""
    values = [y for _, row in series for y in row if y]
    low, high = (min(values), max(values)) if values else (1, 10)
    scale = Scale(low if log else 0, high if log else round_up(high), HEIGHT - BOTTOM, TOP, log)
    step = (WIDTH - LEFT - RIGHT) / max(1, len(labels))
    xs = [LEFT + step * (n + 0.5) for n in range(len(labels))]
    parts = [text(x, HEIGHT - BOTTOM + 16, label) for x, label in zip(xs, labels)]
    legend = coloured([name for name, _ in series], colours)
    for (_, row), (_, colour) in zip(series, legend):
        points = [(x, scale.at(y)) for x, y in zip(xs, row) if y is not None]
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="2"/>')
        if len(points) <= 12:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in points]
    return frame(title, y_title, scale, parts, legend)
