import unittest

from tally.money import format_amount, parse_amount, split_amount


class Money(unittest.TestCase):
    def test_amounts_are_read_and_written(self):
        self.assertEqual(format_amount(parse_amount("12.5")), "12.50")
        self.assertEqual(format_amount(parse_amount("3")), "3.00")

    def test_what_is_no_amount_is_refused(self):
        for text in ("twelve", "nan", "12,50"):
            with self.assertRaisesRegex(ValueError, f'"{text}" is not an amount'):
                parse_amount(text)

    def test_an_amount_is_divided(self):
        self.assertEqual(split_amount(12.0, ["Ann", "Ben", "Cem"]), {"Ann": 4.0, "Ben": 4.0, "Cem": 4.0})
