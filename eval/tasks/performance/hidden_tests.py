import random
import resource
import subprocess
import sys
import unittest
from datetime import date, timedelta

from hidden import ROOT
from tally.entries import Entry, duplicates

CPU_SECONDS = 2
LARGE = """
from datetime import date, timedelta
from tally.entries import Entry, duplicates
entries = [Entry(date(2000, 1, 1) + timedelta(days=n // 9), float(n % 9), "food", str(n)) for n in range(50_000)]
assert duplicates(entries) == []
assert len(duplicates(entries + entries)) == 50_000
"""


def before(entries):
    """As it was."""

    def key(entry):
        return entry.day, entry.amount, entry.category.lower(), entry.person

    return [entry for number, entry in enumerate(entries) if key(entry) in [key(other) for other in entries[:number]]]


class Duplicates(unittest.TestCase):
    def test_many_entries_take_little_time(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        done = subprocess.run([sys.executable, "-c", LARGE], cwd=ROOT, preexec_fn=limit, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_returns_what_it_returned(self):
        chance = random.Random(7)
        for _ in range(50):
            entries = [
                Entry(
                    date(2024, 1, 1) + timedelta(days=chance.randrange(2)),
                    chance.choice((1.0, 1, 2.0)),
                    chance.choice(("food", "Food", "")),
                    str(number),
                    chance.choice(("Ann", "ann", "")),
                )
                for number in range(12)
            ]
            self.assertEqual(duplicates(entries), before(entries))
            self.assertEqual([id(entry) for entry in duplicates(entries)], [id(entry) for entry in before(entries)])

    def test_nothing_has_no_duplicates(self):
        self.assertEqual(duplicates([]), [])
