"""The order in which pytest-xdist hands out the tests: what takes long begins
first, so that no process works on it alone at the end. Without -n nothing of
this is used."""
import re

import pytest

# Ten seconds and more on two cores.
SLOW = re.compile("|".join((
    r"fault/test_nodes\.py::test_two_gateways", r"fault/test_outbox\.py::test_on_", r"test_kill\.py::test_random_kills",
    r"test_outbox_crash\.py::(test_among_many|test_killed_at\[reconcile|test_killed_later|test_killed_again)",
    r"test_failover\.py::", r"test_damage\.py::", r"test_power\.py::", r"test_started_at_once",
    r"test_verify_flaws\.py::test_found\[(waiter|long_key|guest_runs)", r"test_work\.py::test_a_killed",
    r"test_verify_right\.py::", r"test_verify\.py::", r"test_attack\.py::test_(terminate|storm)", r"test_examples\.py::test_killed",
)))
# Of quick tests, several at a time: those of a module share its gateway.
QUICK_TOGETHER = 6


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScheduling

    class SlowFirst(LoadScheduling):
        """A process that has one test left is given more: one that is slow, or a few
        that are quick."""

        def schedule(self):
            if self.collection is not None or not self._check_nodes_have_same_collection():
                super().schedule()
                return
            self.collection = next(iter(self.node2collection.values()))
            slow = [i for i, name in enumerate(self.collection) if SLOW.search(name)]
            quick = [i for i, name in enumerate(self.collection) if not SLOW.search(name)]
            self.slow = set(slow)
            self.pending[:] = slow + quick
            for _ in range(2):  # a process begins a test when it knows the next one
                for node in self.nodes:
                    self._send_tests(node, 1)
            for node in self.nodes:
                self.check_schedule(node)

        def check_schedule(self, node, duration=0):
            if node.shutting_down:
                return
            if not self.pending:
                node.shutdown()
            elif len(self.node2pending[node]) < 2:
                self._send_tests(node, 1 if self.pending[0] in self.slow else QUICK_TOGETHER)

    return SlowFirst(config, log)
