import ast
import unittest
from datetime import date

from hidden import ROOT
from tally import report
from tally.entries import Entry

ENTRIES = [
    Entry(date(2024, 3, 1), 0.1, "food", person="bob"),
    Entry(date(2024, 3, 2), 0.2, "Food", person="Ann"),
    Entry(date(2023, 12, 31), 500.0, "", person=""),
    Entry(date(2024, 1, 5), 7.0, "zoo", person="Bob"),
    Entry(date(2024, 1, 6), 7.0, "art", person="Ann"),
    Entry(date(2024, 1, 6), -7.005, "art", person="Zed"),
]


class Behaviour(unittest.TestCase):
    def test_categories_are_by_total_then_name_and_none_is_last(self):
        self.assertEqual(
            report.by_category(ENTRIES), [("zoo", 7.0), ("food", 0.3), ("art", round(7.0 - 7.005, 2)), ("(none)", 500.0)]
        )
        same = [Entry(date(2024, 1, 1), 1.0, name) for name in ("b", "a")]
        self.assertEqual(report.by_category(same), [("a", 1.0), ("b", 1.0)])

    def test_months_are_in_order(self):
        self.assertEqual(
            report.by_month(ENTRIES), [("2023-12", 500.0), ("2024-01", round(14 - 7.005, 2)), ("2024-03", 0.3)]
        )

    def test_people_are_by_name_and_nobody_is_left_out(self):
        self.assertEqual(
            report.by_person(ENTRIES), [("Ann", 7.2), ("bob", 0.1), ("Bob", 7.0), ("Zed", round(-7.005, 2))]
        )

    def test_nothing_has_no_totals(self):
        self.assertEqual((report.by_category([]), report.by_month([]), report.by_person([])), ([], [], []))


class Shape(unittest.TestCase):
    def test_totals_by_leaves_out_what_has_no_name(self):
        totals = report.totals_by(ENTRIES, lambda entry: entry.person or None)
        rounded = {name: round(total, 2) for name, total in totals.items()}
        self.assertEqual(rounded, {"bob": 0.1, "Ann": 7.2, "Bob": 7.0, "Zed": round(-7.005, 2)})

    def test_it_alone_adds_up(self):
        tree = ast.parse((ROOT / "tally/report.py").read_text(encoding="utf-8"))
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for name in ("by_category", "by_month", "by_person"):
            uses = {node.attr for node in ast.walk(functions[name]) if isinstance(node, ast.Attribute)}
            self.assertNotIn("amount", uses, name)
            called = {node.func.id for node in ast.walk(functions[name]) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
            self.assertIn("totals_by", called, name)
