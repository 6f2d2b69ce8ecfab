"""`aiflow init`."""

from __future__ import annotations

import click

from aiflow.cli.options import command as make_command
from aiflow.cli.session import Session, print_json


@make_command("init")
def command(session: Session, as_json: bool) -> None:  # noqa: FBT001
    """Make a project ready, and say what comes next."""
    from aiflow.usecases.init_project import init_project
    from aiflow.wiring import new_project

    project = new_project(session.start)
    root = project.root
    session.check_settings(root)
    has_requests = any((project.path / "requests").glob("*.md"))
    session.project = project
    done = init_project(project.folder, has_requests, session.texts, (session.journal, session.now))
    if as_json:
        print_json({"root": str(root), "made": list(done.made), "kept": list(done.kept)})
        return
    texts = session.texts
    click.echo(texts("init.done" if done.made else "init.nothing", root=root))
    for path in done.made:
        click.echo("  + " + path)
    for path in done.kept:
        click.echo("  = " + path + "  " + texts("init.kept"))
    click.echo()
    click.echo(texts("init.next"))
