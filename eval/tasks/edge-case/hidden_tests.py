import unittest

from tally.money import split_amount


def cents(shares):
    return [round(share * 100) for share in shares.values()]


class Shares(unittest.TestCase):
    def test_of_the_request(self):
        self.assertEqual(cents(split_amount(10.0, ["Ann", "Ben", "Cem"])), [334, 333, 333])

    def test_several_cents_are_left(self):
        self.assertEqual(cents(split_amount(0.05, ["a", "b", "c"])), [2, 2, 1])
        self.assertEqual(cents(split_amount(20.0, ["a", "b", "c"])), [667, 667, 666])

    def test_fewer_cents_than_people(self):
        self.assertEqual(cents(split_amount(0.02, ["a", "b", "c"])), [1, 1, 0])
        self.assertEqual(cents(split_amount(0.0, ["a", "b"])), [0, 0])

    def test_a_refund_adds_up_as_well(self):
        shares = cents(split_amount(-10.0, ["a", "b", "c"]))
        self.assertEqual(sum(shares), -1000)
        self.assertLessEqual(max(shares) - min(shares), 1)

    def test_any_amount_adds_up(self):
        for amount in range(-250, 1250, 7):
            for count in range(1, 8):
                shares = cents(split_amount(amount / 100, [f"p{number}" for number in range(count)]))
                self.assertEqual(sum(shares), amount, (amount, count))
                self.assertLessEqual(max(shares) - min(shares), 1, (amount, count))

    def test_no_crumbs_of_a_cent(self):
        for share in split_amount(0.29, ["a", "b"]).values():
            self.assertEqual(f"{share:.2f}", f"{round(share * 100) / 100:.2f}")
            self.assertAlmostEqual(share * 100, round(share * 100), places=9)
