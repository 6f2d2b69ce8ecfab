import contextlib
import io
import tempfile
import unittest
from pathlib import Path

from tally.cli import main


class Cli(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.book = Path(folder.name, "book.json")

    def tally(self, *arguments):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(main(["--book", str(self.book), *arguments]), 0)
        return said.getvalue().splitlines()

    def test_what_is_added_is_listed_oldest_first(self):
        self.tally("add", "12.50", "food", "Lunch", "--date", "2024-03-02")
        self.tally("add", "700", "rent", "--date", "2024-03-01")
        self.assertEqual(
            self.tally("list"), ["2024-03-01      700.00  rent", "2024-03-02       12.50  food          Lunch"]
        )

    def test_the_newest(self):
        for day in ("2024-03-02", "2024-03-01", "2024-03-03"):
            self.tally("add", "1", "food", "--date", day)
        self.assertEqual([line[:10] for line in self.tally("list", "--limit", "2")], ["2024-03-02", "2024-03-03"])
        self.assertEqual([line[:10] for line in self.tally("list", "--limit", "1", "--reverse")], ["2024-03-03"])

    def test_a_report_of_a_month(self):
        self.tally("add", "12.50", "food", "--date", "2024-03-02")
        self.tally("add", "5", "food", "--date", "2024-04-02")
        self.assertEqual(self.tally("report", "--month", "2024-03"), ["food                  12.50"])

    def test_an_amount_is_split(self):
        self.assertEqual(self.tally("split", "9", "Ann", "Ben"), ["Ann                    4.50", "Ben                    4.50"])
