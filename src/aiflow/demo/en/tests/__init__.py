"""Calls the program as its users do, on a list of its own."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import todo


class TodoCase(unittest.TestCase):
    """A test that begins with an empty list."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        patch = mock.patch.object(todo, "FILE", Path(folder.name) / "todo.json")
        patch.start()
        self.addCleanup(patch.stop)

    def call(self, *words):
        """Return what the program prints."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            todo.main(list(words))
        return printed.getvalue()
