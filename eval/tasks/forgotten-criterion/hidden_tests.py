import csv

from hidden import ROOT, Called

HEAD = ["day", "amount", "category", "note", "person"]


class Export(Called):
    def rows(self, *options):
        return list(csv.reader(self.lines("export", *options)))

    def test_an_empty_book_gives_the_head_alone(self):
        self.assertEqual(self.lines("export"), [",".join(HEAD)])

    def test_entries_are_quoted_and_oldest_first(self):
        self.lines("add", "12.5", "food", 'Soup, "hot"', "--date", "2024-03-02", "--person", "Ann")
        self.lines("add", "700", "rent", "--date", "2024-03-01")
        self.assertEqual(
            self.rows(),
            [
                HEAD,
                ["2024-03-01", "700.00", "rent", "", ""],
                ["2024-03-02", "12.50", "food", 'Soup, "hot"', "Ann"],
            ],
        )

    def test_nothing_is_run_as_a_formula(self):
        for first in "=+@":
            self.lines("add", "1", f"{first}cat", f"{first}1+1", "--date", "2024-03-01", "--person", f"{first}Ann")
        self.lines("add", "--date", "2024-03-02", "--person=-Ann", "--", "2", "-cat", "-1")
        for row, first in zip(self.rows()[1:], "=+@-", strict=True):
            self.assertEqual([field[:2] for field in row[2:]], [f"'{first}"] * 3)

    def test_an_amount_below_zero_stays_a_number(self):
        self.lines("add", "--date", "2024-03-02", "--", "-2", "food")
        self.assertEqual(self.rows()[1][1], "-2.00")

    def test_a_month(self):
        for day in ("2024-03-31", "2024-04-01"):
            self.lines("add", "1", "food", "--date", day)
        self.assertEqual([row[0] for row in self.rows("--month", "2024-04")], ["day", "2024-04-01"])

    def test_it_is_documented(self):
        text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
        section = text.partition("## tally export")[2].partition("\n## ")[0]
        self.assertIn("--month", section)
