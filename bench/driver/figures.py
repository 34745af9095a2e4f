"""The statistics: medians, spreads, and ratios of figures of the same round."""


def median(values):
    """None where there are none."""
    ordered = sorted(value for value in values if value is not None)
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def spread(values):
    """(median, least, greatest), or None."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    return median(present), min(present), max(present)


def by_round(samples, key):
    """{round: figure} of those that have it."""
    return {sample["round"]: sample[key] for sample in samples if sample.get(key) is not None}


def ratio(samples, base, key):
    """The ratio of the medians, and the least and greatest ratio of two figures of the
    same round; None where no round has both."""
    ours, theirs = by_round(samples, key), by_round(base, key)
    rounds = [number for number in ours if theirs.get(number)]
    if not rounds:
        return None
    each = [ours[number] / theirs[number] for number in rounds]
    whole = median(ours[number] for number in rounds) / median(theirs[number] for number in rounds)
    return whole, min(each), max(each)


def percentile(pairs, share):
    """Of [[value, count], ...] in order of value."""
    total = sum(count for _, count in pairs)
    seen = 0
    for value, count in pairs:
        seen += count
        if seen >= share * total:
            return value
    return None


def pick(samples, **wanted):
    """Those samples whose fields are as wanted."""
    return [sample for sample in samples
            if all(sample.get(name) == value for name, value in wanted.items())]


# The latency distribution is kept at these shares.
SHARES = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999]


def distribution(pairs):
    return [[share, percentile(pairs, share)] for share in SHARES] if pairs else []
