"""A provider whose ledger has the time of each effect, for operations that expire while
the test runs: a key may be executed again once its record has expired, under another
reference, and never before."""
import time

from harness.provider import Provider

BRIEF_TARGET = "/brief"
BRIEF_SECONDS = 1.0
# Operations of that path expire after a second and are reaped at once.
BRIEF = {"routes": [{"match": f"POST {BRIEF_TARGET}", "retention": "1s"}], "reap": {"every": "1s"}}
# A record's times are whole milliseconds of the wall clock.
ROUNDING_SECONDS = 0.005


class TimedProvider(Provider):
    """Its effects stay in memory as (seconds, reference, key), beside the ledger's file."""

    def __init__(self, *how):
        self.effects = []
        super().__init__(*how)

    def effect(self, request):
        super().effect(request)
        entry = (time.monotonic(), request["Hapax-Operation"], request["Idempotency-Key"].strip('"'))
        with self.lock:
            self.effects.append(entry)


def judge_brief(provider, operations):
    """Each reference happened at most once, and another one of the same key only after
    the record before it had expired; exactly one for each answer that was seen."""
    by_key = {}
    for effect in sorted(provider.effects):
        by_key.setdefault(effect[2], []).append(effect)
    for operation in operations:
        effects = by_key.get(operation.key, [])
        references = [reference for _, reference, _ in effects]
        assert len(set(references)) == len(references), f"one reference twice: {operation} {effects}"
        for before, after in zip(effects, effects[1:]):
            gap = after[0] - before[0]
            assert gap >= BRIEF_SECONDS - ROUNDING_SECONDS, f"again after {gap:.3f} s, not {BRIEF_SECONDS}: {operation}"
        seen = len(operation.successes) + (1 if operation.not_kept and not operation.successes else 0)
        assert seen <= len(effects), f"{seen} successes of {len(effects)} effects: {operation}"
