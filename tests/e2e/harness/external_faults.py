"""Which fault meets which request of the external service. A script is a list of
rules, the first that matches decides:

  {"when": {"kind": "send" | "lookup",        default: send
            "number": N or [N, ...],          the how-manieth send or lookup of all
            "nth": N or [N, ...],             the how-manieth send of its key
            "path": "/pay*", "key": K, "operation": O},
   "times": N,                                at most so often
   "fault": {...}}                            or, instead of it:
   "random": {"seed": S, "share": 0.3, "faults": [{...}, ...]}

A fault is {"kind": one of KINDS} with, for any kind:
  before_ms, after_ms          slow before and after the effect
  before_gate, after_gate      held there until the test releases the gate
  state                        of the effect (succeeded), or what a lookup says
  webhooks                     twists of external_webhooks, instead of the setting
and for some: status, retry_after, late_ms, bytes, headers, json.

The randomness of a request comes from the seed and its number, so that it does
not depend on what other rules drew."""
import collections
import fnmatch
import random

Kind = collections.namedtuple("Kind", "effect ending status")

# effect: whether it happens, before the answer; ending: what the caller sees.
KINDS = {
    "none": Kind("yes", "answer", None),
    "big": Kind("yes", "big", None),
    "too_many": Kind("no", "status", 429),
    "unavailable": Kind("no", "status", 503),
    "error_before": Kind("no", "status", 500),
    "error_after": Kind("yes", "status", 500),
    "reset_before": Kind("no", "reset", None),
    "reset_after": Kind("yes", "reset", None),
    "half": Kind("yes", "half", None),
    "nonsense": Kind("yes", "nonsense", None),
    "hold_before": Kind("no", "silence", None),
    "hold_after": Kind("yes", "silence", None),
    "late": Kind("late", "silence", None),
    "decline": Kind("declined", "answer", 402),
    "say": Kind("no", "status", 200),
}
FIELDS = {"kind", "before_ms", "after_ms", "before_gate", "after_gate", "state", "webhooks",
          "status", "retry_after", "late_ms", "bytes", "headers", "json"}
WHEN = {"kind", "number", "nth", "path", "key", "operation"}
RULE = {"id", "when", "times", "fault", "random"}
NONE = {"kind": "none"}


def check_fault(fault):
    assert fault.get("kind", "none") in KINDS, f"no such fault: {fault}"
    assert set(fault) <= FIELDS, f"not known of a fault: {set(fault) - FIELDS}"


def check(rules):
    """A misspelt script is the test's mistake, and must not look like calm weather."""
    for rule in rules:
        assert set(rule) <= RULE, f"not known of a rule: {set(rule) - RULE}"
        assert set(rule.get("when", {})) <= WHEN, f"not known of when: {rule['when']}"
        assert ("fault" in rule) != ("random" in rule), f"one of fault and random: {rule}"
        for fault in [rule["fault"]] if "fault" in rule else rule["random"]["faults"]:
            check_fault(fault)


def matches(when, row):
    if row["kind"] != when.get("kind", "send"):
        return False
    for name in ("number", "nth"):
        wanted = when.get(name, row[name])
        if row[name] not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    if not fnmatch.fnmatchcase(row["path"], when.get("path", "*")):
        return False
    return all(row[name] == when[name] for name in ("key", "operation") if name in when)


def draw(dice, row):
    """The fault of a random rule for this request, or None for none."""
    chance = random.Random(f"{dice['seed']}:{row['kind']}:{row['number']}")
    if chance.random() >= dice.get("share", 1.0):
        return None
    return chance.choice(dice["faults"])


def choose(rules, row, times_of):
    """(rule's id or None, fault) for a request; `times_of` counts a rule's uses."""
    for rule in rules:
        if not matches(rule.get("when", {}), row):
            continue
        if "times" in rule and times_of(rule["id"]) >= rule["times"]:
            continue
        fault = rule["fault"] if "fault" in rule else draw(rule["random"], row)
        if fault is not None:
            return rule["id"], {**NONE, **fault}
    return None, NONE
