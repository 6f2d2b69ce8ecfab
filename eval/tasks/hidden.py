"""What all hidden tests share: the program is called as a user calls it, on a book of its own."""

import contextlib
import io
import runpy
import sys
import tempfile
import traceback
import unittest
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

ROOT = Path(__file__).parent


class Called(unittest.TestCase):
    """Calls tally on a book that is this test's alone."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.book = self.folder / "book.json"

    def call(self, *arguments):
        """Do what `python3 -m tally` does, in this process, and return how it ended."""
        out, err, code = io.StringIO(), io.StringIO(), 0
        argv = ["tally", "--book", str(self.book), *arguments]
        with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                runpy.run_module("tally", run_name="__main__")
            except SystemExit as ended:
                code = ended.code or 0
                if isinstance(code, str):
                    print(code, file=sys.stderr)
                    code = 1
            except Exception:
                traceback.print_exc()
                code = 1
        return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())

    def lines(self, *arguments):
        """Call tally, which must succeed, and return the lines that it prints."""
        done = self.call(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout.splitlines()

    def refused(self, *arguments):
        """Call tally, which must refuse in one plain message, and return that."""
        done = self.call(*arguments)
        self.assertEqual(done.returncode, 2, done)
        self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(done.stdout, "")
        return done.stderr.strip()
