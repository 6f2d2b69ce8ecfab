from hidden import ROOT, Called


class Limit(Called):
    def setUp(self):
        super().setUp()
        for day in ("2024-03-02", "2024-03-01", "2024-03-03"):
            self.lines("add", "1", "food", "--date", day)

    def days(self, *options):
        return [line[8:10] for line in self.lines("list", *options)]

    def test_the_newest_are_shown_oldest_first(self):
        self.assertEqual(self.days("--limit", "2"), ["02", "03"])
        self.assertEqual(self.days("--limit", "9"), ["01", "02", "03"])

    def test_reverse_is_newest_first(self):
        self.assertEqual(self.days("--reverse"), ["03", "02", "01"])
        self.assertEqual(self.days("--reverse", "--limit", "2"), ["03", "02"])

    def test_a_wrong_limit_is_refused(self):
        for limit in ("0", "-1", "many"):
            self.assertIn("--limit", self.refused("list", f"--limit={limit}"))

    def test_nothing_changes_without_them(self):
        self.assertEqual(self.days(), ["01", "02", "03"])


class Guide(Called):
    def test_it_describes_both(self):
        text = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
        section = text.partition("## tally list")[2].partition("\n## ")[0]
        self.assertIn("--reverse", section)
        self.assertIn("--limit", section)

    def test_the_changelog_has_a_line(self):
        text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        unreleased = text.partition("## Unreleased")[2].partition("\n## ")[0]
        self.assertIn("--reverse", unreleased)
        self.assertIn("tally split", unreleased)
