from hidden import ROOT, Called


class Narrowed(Called):
    def setUp(self):
        super().setUp()
        for day, category in (
            ("2024-03-05", "Food"),
            ("2024-03-01", "food"),
            ("2024-03-31", "rent"),
            ("2024-04-01", "FOOD"),
        ):
            self.lines("add", "1", category, day, "--date", day)

    def days(self, *options):
        return [line.split()[0] for line in self.lines("list", *options)]

    def test_by_category_in_any_case(self):
        self.assertEqual(self.days("--category", "fOOd"), ["2024-03-01", "2024-03-05", "2024-04-01"])
        self.assertEqual(self.days("--category", "foo"), [])

    def test_by_days_both_included(self):
        self.assertEqual(self.days("--since", "2024-03-05"), ["2024-03-05", "2024-03-31", "2024-04-01"])
        self.assertEqual(self.days("--until", "2024-03-31"), ["2024-03-01", "2024-03-05", "2024-03-31"])
        self.assertEqual(self.days("--since", "2024-03-31", "--until", "2024-03-31"), ["2024-03-31"])
        self.assertEqual(self.days("--since", "2024-04-01", "--until", "2024-03-01"), [])

    def test_combined(self):
        self.assertEqual(self.days("--category", "food", "--since", "2024-03-02"), ["2024-03-05", "2024-04-01"])

    def test_no_option_lists_everything_as_before(self):
        self.assertEqual(self.lines("list")[0], "2024-03-01        1.00  food          2024-03-01")
        self.assertEqual(len(self.days()), 4)

    def test_what_is_no_day_is_refused(self):
        self.assertIn("--since", self.refused("list", "--since", "yesterday"))

    def test_the_guide_describes_the_options(self):
        text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
        section = text.partition("## tally list")[2].partition("\n## ")[0]
        for option in ("--category", "--since", "--until"):
            self.assertIn(option, section)
