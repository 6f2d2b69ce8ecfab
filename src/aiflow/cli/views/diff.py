"""What a run changed, as people read it: file by file, or the diff itself, to be read or applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from aiflow.cli.terminal.render import clean, heading, is_terminal, paint, say, table

if TYPE_CHECKING:
    from aiflow.cli.session import CliSession
    from aiflow.domain.runs.worktree import FileDiff, RunDiff

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}
_HEADS = ("diff --git ", "index ", "--- ", "+++ ", "new file ", "deleted file ", "old mode ", "new mode ", "rename ")


def show_diff(session: CliSession, found: RunDiff) -> None:
    """Write the diff: in colour on a terminal; in a pipe as git does, so that it can be applied."""
    if not is_terminal():
        click.echo(found.text, nl=False)
        _show_notes(session, found, err=True)
        return
    _show_head(session, found)
    is_head = False
    for line in found.text.splitlines():
        is_head = line.startswith("diff --git ") or (is_head and line.startswith(_HEADS))
        shown = clean(line.replace("\t", "    "))
        click.echo(paint(shown, is_bold=True) if is_head else paint(shown, _COLOURS.get(line[:1])))
    _show_notes(session, found, err=False)


def show_files(session: CliSession, found: RunDiff) -> None:
    """List the files with the lines that were added and deleted."""
    _show_head(session, found)
    if found.files:
        headers = [session.texts(f"column.{name}") for name in ("added", "deleted", "file")]
        table(headers, [_row(session, file, found) for file in found.files])
    _show_notes(session, found, err=False)


def _row(session: CliSession, file: FileDiff, found: RunDiff) -> list[str]:
    counts = ["-", "-"] if file.is_binary else [f"+{file.added}", f"-{file.deleted}"]
    path = f"{file.old_path} → {file.path}" if file.old_path else file.path
    is_open = file.path in found.unfinished_paths
    return [*counts, f"{path} ({session.texts('diff.open')})" if is_open else path]


def _show_head(session: CliSession, found: RunDiff) -> None:
    counts = {
        "files": len(found.files),
        "added": sum(file.added for file in found.files),
        "deleted": sum(file.deleted for file in found.files),
    }
    heading("  ".join(filter(None, (found.request_id, found.run_id, found.step_id))))
    click.echo("  " + session.texts("diff.counts", **counts))


def _show_notes(session: CliSession, found: RunDiff, *, err: bool) -> None:
    """Say what is not plain to see: nothing changed, commits gone, cut, or work of an unfinished step."""
    texts = session.texts
    if found.is_gone:
        say(texts("diff.gone", run_id=found.run_id), err=err)
    elif not found.files:
        say(texts("diff.none"), err=err)
    if found.unfinished:
        say(texts("diff.unfinished", step=found.unfinished), err=err)
    if found.is_cut:
        say(texts("diff.cut", old=found.old[:12], new=found.new[:12]), err=err)
