"""The scenes whose `--json` is recorded: together they call every command that has it, and most ways to be refused."""

from __future__ import annotations

import os

from interfaces.recording import Stage

NO_SANDBOX = "-c agent.sandbox=off doctor"  # what there is depends on the kernel
JAPANESE = {"LANG": "ja_JP.UTF-8"}
HANG = "write('half.txt', 'half\\n'); (HERE / 'hangs').touch(); time.sleep(600)"
# A lock of another machine: nobody here can tell whether its holder still runs, so it is held until it expires.
LOCK = (
    '{"version": "1.0", "lock_type": "request", "request_id": "RQ-1", "run_id": "RUN-20190101-000000-abcdef", '
    '"pid": 4711, "host": "build-7", "created_at": "2019-01-01T00:00:00+00:00", '
    '"expires_at": "2119-01-01T00:00:00+00:00", "token": "t", "fence": 8}'
)


def empty(stage: Stage) -> None:
    """A repository in which nothing is set up yet, and then one without requests."""
    reads = ("status", "list", "next", "next --all", "forecast", "runs", "locks", "auto --last", "clean --dry-run")
    stage.says(*reads, "show RQ-1", "why RQ-1", "run RQ-1", "auto", "stop", NO_SANDBOX, "agents")
    stage.says("init --agent demo", "init --agent demo", "settings --changed")
    stage.says(*reads, "doctor", "agents")
    stage.says("doctor", "show RQ-1", env=JAPANESE)


def _fill(stage: Stage) -> None:
    stage.configure()
    stage.request("RQ-1", priority="P1", updated_at="2019-02-03T09:00:00+09:00", labels="[shop, 日本語]")
    stage.request("RQ-2", priority="P0", created_at="2019-01-01", depends_on="[RQ-8]")
    stage.request("RQ-3", depends_on="[RQ-4, RQ-99]", priority="P0")
    stage.request("RQ-4", status="blocked")
    stage.request("RQ-5", status="draft", priority="P3", labels="[shop]")
    stage.request("RQ-6", depends_on="[RQ-7]")
    stage.request("RQ-7", depends_on="[RQ-6]")
    stage.request("RQ-8", status="done")
    stage.request("RQ-9", status="archived")
    stage.request("RQ-10", depends_on="[RQ-5]")
    stage.request("RQ-11", priority="P9", status="wip")
    stage.request("RQ-12", depends_on="[RQ-12]")
    stage.request("RQ-13", "Hid\u200bden <!-- words --> here.\n", title='"Given \u202etitle"')
    stage.request("RQ-14", priority="P1", updated_at="2019-02-03T00:00:00Z")
    stage.request("sub/RQ-14", priority="P1")
    stage.request("RQ-15", status="running")
    stage.request("RQ-16", depends_on="[RQ-11]")
    stage.write("requests/broken.md", "---\n[\n---\n")
    stage.write("requests/RQ 17.md", "---\nstatus: ready\n---\n# A blank in its name\n")
    stage.write(
        "runs/RQ-4/RUN-20190101-000000-abcdef/stage.json",
        '{"state": "NEEDS_INPUT", "error": {"category": "EXECUTION", "reason_code": "UNIT_TEST_FAILED"}, '
        '"history": [{"at": "2019-01-02T00:00:00Z", "event": "NEEDS_INPUT"}]}',
    )


def backlog(stage: Stage) -> None:
    """Requests of every status, with dependencies of every kind and files that cannot be used; only read."""
    _fill(stage)
    stage.says(
        "list",
        "list --all",
        "list -s ready",
        "list -s draft -s done",
        "list -p P0 -p P1",
        "list -l shop",
        "list -l none",
    )
    stage.says("status", "next", "next --all", "forecast", "runs", "runs RQ-4", "runs -n 1")
    numbers = (1, 3, 4, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16)
    stage.says(*(f"why RQ-{number}" for number in numbers), "why broken")
    stage.says(*(f"show RQ-{number}" for number in (1, 2, 4, 11, 13, 14)), "show broken", "show requests/RQ-1.md")
    stage.says("show RUN-20190101-000000-abcdef", "report RQ-4", "logs RQ-4")
    stage.says("why RQ-3", "why RQ-4", "show RQ-11", "list -s ready", "next", "forecast", "why RQ-99", env=JAPANESE)


def edits(stage: Stage) -> None:
    """Requests that are made and changed, and changes that are refused."""
    stage.configure()
    stage.request("RQ-1", priority="P2", updated_at="2019-01-01")
    stage.request("RQ-2", status="draft")
    stage.write("requests/RQ-3.md", "---\nstatus: [\n---\n# Broken\n")
    stage.says("set RQ-1 priority=P0", "set RQ-1 priority=P0", "set RQ-1 priority=P1 --expect P0")
    stage.says("set RQ-1 depends_on=RQ-2", "set RQ-1 'labels=shop, web'", "set RQ-1 'title=Another: title'")
    stage.says("set RQ-1 updated_at=2019-02-02", "set RQ-2 status=ready", "show RQ-1", "show RQ-2")
    stage.says("edit RQ-2 -F -", stdin="---\nstatus: ready\n---\n# Another\n\nText.\n")
    stage.says("edit RQ-2 -F -", stdin="---\nstatus: ready\n---\n# Another\n\nText.\n")
    stage.says("edit RQ-2 -F -", stdin="---\nstatus: wip\n---\n# Another\n")
    stage.says("edit RQ-9 -F -", stdin="x")
    refused = (
        *("set RQ-1 priority=P9", "set RQ-1 colour=red", "set RQ-1 status", "set RQ-9 status=ready"),
        *("set RQ-1 status=done --expect draft", "set RQ-1 updated_at=soon", "set RQ-1 'depends_on=a b'"),
        *("set RQ-3 status=ready", "set RQ-1 status=wip"),
    )
    stage.says(*refused)
    stage.says(*refused, env=JAPANESE)
    # Made in one second or in two, they are listed in the same order: each by its priority, or else by its id.
    stage.says("new 'By hand' --id RQ-4 -p P3 --no-edit")
    stage.says("new 'All given' --id RQ-5 -p P1 --ready -d RQ-4 -l web -b Text.", "new Numbered", "new Numbered")
    stage.says("new 'From stdin' --id RQ-6 -p P1 -F -", stdin="A text\nof two lines.\n")
    stage.says(
        "new Again --id RQ-4", "new Bad --id 'a b'", "new", "new '' --id RQ-8", "new Waits --id RQ-7 -p P3 -d RQ-99"
    )
    stage.says("new Again --id RQ-4", "new", env=JAPANESE)
    stage.says("list", "show RQ-5", "show RQ-6")
    stage.says(
        "activity -n 2", "activity RQ-1 -n 2", "activity -k request_created -a person -n 1", "activity -r NO_CODE"
    )
    stage.says("activity --before x", "activity -k nothing", "activity RQ-99")


def refusals(stage: Stage) -> None:
    """What is refused before anything starts, in both languages."""
    stage.configure()
    stage.request("RQ-1")
    stage.request("RQ-2", status="draft")
    stage.request("RQ-3", depends_on="[RQ-2]")
    stage.request("RQ-4", status="wip")
    stage.request("RQ-5", status="done")
    unknown = (
        *("run RQ-99", "run RUN-20190101-000000-abcdef", "run nothing/such.md", "resume RQ-99", "retry-step RQ-99"),
        *("replan RQ-99", "cancel RQ-99", "accept RQ-99", "send-back RQ-99 -m No", "logs RQ-99", "report RQ-99"),
        *("runs RQ-99", "show RQ-99", "clean RQ-99", "locks break RQ-99 -y", "show RUN-20190101-000000-abcdef"),
    )
    without_run = (
        *("resume RQ-1", "retry-step RQ-1", "replan RQ-1", "cancel RQ-1", "accept RQ-1", "send-back RQ-1 -m No"),
        *("logs RQ-1", "report RQ-1", "send-back RQ-1", "diff RQ-1", "diff", "shell RQ-1"),
    )
    mistyped = (
        *("run", "lst", "list --sttus ready", "list -s wip", "logs RQ-1 -n x", "auto --max-runs -1", "run RQ-1 RQ-2"),
        *("locks brk", "locks break", "store jump", "-c colour=red list", "-c agent.kind list", "agents nobody"),
        *("-c limits.step_retries=many settings", "-c agent.kind=none doctor", "-C nowhere list", "clean --days -1"),
        *("--lang fr list", "completion csh", "queue", "queue ad"),
    )
    for env in (None, JAPANESE):
        stage.says(*unknown, *without_run, *mistyped, env=env)
        # There is no commit yet.
        stage.says("run RQ-1", "run RQ-2", "run RQ-3", "run RQ-4", "run RQ-5", "auto", "stop", "stop --now", env=env)
    stage.commit()
    stage.write("aiflow.toml", 'colour = "red"\n[agent]\nkind = "none"\n')
    for env in (None, JAPANESE):
        stage.says("list", "run RQ-1", "settings", "doctor", env=env)
    stage.write("aiflow.toml", "[agent\n")
    stage.says("list", "run RQ-1", "auto", "settings", "agents")
    stage.write("aiflow.toml", '[agent]\nkind = "claude-code"\n')
    stage.says("run RQ-1", "auto", NO_SANDBOX)
    stage.says("list", "-c language=ja why RQ-99", env={"AIFLOW_AGENT_KIND": "none"})


def house(stage: Stage) -> None:
    """What keeps a checkout in order: settings, agents, doctor, locks, the store, the demo, completion."""
    stage.configure('[tests]\nunit = "test -e app.txt"\n')
    stage.write("app.txt", "app\n")
    stage.request("RQ-1")
    stage.request("RQ-2")
    stage.commit()
    stage.says("settings", "settings --changed", "-c accept=auto settings --changed")
    stage.says("settings --changed", env={"AIFLOW_LIMITS_STEP_RETRIES": "5", "AIFLOW_LANG": "ja"})
    stage.says("agents", "agents command --check", "agents codex", "agents demo --check", "-c agent.kind=codex agents")
    stage.says("doctor", "doctor --full")
    stage.says("doctor", "agents", env=JAPANESE)
    stage.write("app.txt", "changed by hand\n")
    stage.says("doctor", "run RQ-1")
    stage.says("doctor", "run RQ-1", env=JAPANESE)
    stage.git("checkout", "-q", "app.txt")
    stage.write(".aiflow/locks/request.RQ-1.lock.json", LOCK)
    for env in (None, JAPANESE):
        stage.says("locks", "run RQ-1", "run RQ-2", "next", "list", "why RQ-1", "doctor", env=env)
    stage.says("sessions", "sessions revoke nobody", "sessions revoke", "open", "service status --print")
    stage.says("up --host 0.0.0.0 -c server.auth=none")
    stage.says("locks break RQ-2 -y", "locks break RQ-1", "locks")
    stage.write(".aiflow/locks/queue.lock.json", LOCK.replace("request", "queue").replace('"RQ-1"', "null"))
    stage.says("locks", "next", "auto", "run RQ-1", "stop", "locks break --queue -y", "locks")
    stage.write(".aiflow/locks/request.RQ-2.lock.json", "{")
    os.utime(stage.root / ".aiflow/locks/request.RQ-2.lock.json", (0, 0))  # else somebody may still be writing it
    stage.says("locks", "next", "doctor --full", "locks")
    stage.says(
        "queue store status",
        "queue store stop",
        "queue store logs",
        "queue list",
        "queue add RQ-2",
        "queue",
        "queue runners",
    )
    stage.says("queue store status", "queue list", env=JAPANESE)
    stage.says("completion bash", "demo ../demo --no-run", "demo ../demo --no-run")


def runs(stage: Stage) -> None:
    """Runs that stop in every usual way, everything that shows them, and the ways on."""
    stage.configure('[tests]\nunit = "test ! -e bad.txt"\n[limits]\nstep_retries = 1\n')
    stage.agent.plans("S01", "S02")
    for number in (1, 2, 3, 4):
        stage.request(f"RQ-{number}")
    stage.commit()
    stage.agent.does("implementer", "ask('Blue or green?') if call['request']['id'] == 'RQ-1' else done()", "S02")
    stage.says("run RQ-1")
    _look(stage, "RQ-1")
    stage.says("resume RQ-1", "accept RQ-1", "retry-step RQ-1 S09", "cancel RQ-1", "run RQ-1")
    stage.says("resume RQ-1", "show RQ-1", "report RQ-1", "run RQ-1", env=JAPANESE)
    stage.says("retry-step RQ-1")
    stage.next_second()  # or its commit might be the very same
    stage.says("retry-step RQ-1 S01 -a Blue", "retry-step RQ-1")
    stage.agent.forget()
    stage.says("resume RQ-1 -a Green")
    _look(stage, "RQ-1")
    stage.next_second()
    stage.agent.does("implementer", "write('bad.txt', 'x'); done('Wrote it.')", "S02")
    stage.says("run RQ-2", "resume RQ-2", "resume RQ-2")
    _look(stage, "RQ-2")
    stage.agent.forget()
    stage.next_second()
    stage.says("replan RQ-2 -a 'Without it'", "show RQ-2", "runs RQ-2", "why RQ-2")
    stage.next_second()
    stage.agent.does("planner", "answer('no plan at all')")
    stage.says("run RQ-3")
    _look(stage, "RQ-3")
    stage.says("run RQ-3", env=JAPANESE)
    stage.agent.does("planner", "sys.exit(3)")
    stage.next_second()
    stage.says("run RQ-4", "resume RQ-4", env=JAPANESE)
    _look(stage, "RQ-4")
    stage.says("runs", "runs -n 2", "list", "next --all", "forecast", "clean --dry-run --now --unmerged", "diff")


def _look(stage: Stage, request_id: str) -> None:
    """Show a request's newest run in every way."""
    newest = sorted(path.name for path in (stage.root / "runs" / request_id).glob("RUN-*"))[-1]
    stage.says(f"show {request_id}", f"show {newest}", f"why {request_id}", f"runs {request_id}")
    stage.says(f"report {request_id}", f"logs {newest}", f"logs {request_id} -s S02", f"logs {request_id} -n 2")
    stage.says(f"diff {newest}", f"diff {request_id} -s S02", f"shell {request_id}")


def accepting(stage: Stage) -> None:
    """Finished runs: accepted, undone, sent back, in the way of each other, and what is left of them."""
    stage.configure('[tests]\nunit = "test -e app.txt"\n')
    stage.write("app.txt", "app\n")
    stage.git("remote", "add", "origin", "https://github.com/ada/shop.git")
    for number in (1, 2, 3):
        stage.request(f"RQ-{number}")
    stage.request("RQ-4", depends_on="[RQ-1]")
    stage.commit()
    stage.agent.does("implementer", "write('app.txt', call['request']['id']); done('Changed the app.')")
    for number in (1, 2):
        stage.says(f"run RQ-{number}")
        stage.next_second()
    stage.says("run RQ-1", "why RQ-1", "why RQ-4", "accept RQ-1", "accept RQ-1", "show RQ-1", "report RQ-1", "why RQ-4")
    for env in (None, JAPANESE):
        stage.says("accept RQ-2", "cancel RQ-1", "resume RQ-1", "replan RQ-1", "send-back RQ-1 -m No", env=env)
        stage.says("send-back RQ-2", "resume RQ-2", env=env)
    stage.says("send-back RQ-2 -m 'Keep the old name'", "show RQ-2", "why RQ-2", "accept RQ-2")
    stage.says("run RQ-2", "resume RQ-2", "show RQ-2")
    stage.next_second()
    stage.agent.forget()
    stage.says("accept", "accept RQ-2 --all", "accept --all", "accept --all --update")
    stage.says("-c accept=auto run RQ-3", "show RQ-3", "runs", "list")
    stage.says("clean --dry-run", "clean --dry-run --now", "clean --dry-run --now --unmerged", "clean RQ-1 --now")
    stage.says("clean RQ-1 --now", "clean --now", "clean --now", "show RQ-1")
    stage.request("RQ-5")
    stage.agent.does("implementer", "done('It was there already.')")
    stage.says("-c accept=auto run RQ-5", "why RQ-5", "report RQ-5", "accept RQ-5")
    stage.request("RQ-6")
    stage.agent.does("implementer", "write('more.txt', 'more'); done('Added more.')")
    stage.says("undo RQ-6", "-c accept=auto run RQ-6", "undo RQ-6", "why RQ-6", "undo RQ-6")


def in_progress(stage: Stage) -> None:
    """A run at work, refused to others and cancelled; another that was killed."""
    stage.configure()
    stage.request("RQ-1")
    stage.request("RQ-2")
    stage.commit()
    stage.agent.does("implementer", HANG)
    running = stage.begin("run RQ-1")
    stage.wait_for("hangs")
    for env in (None, JAPANESE):
        stage.says("run RQ-1", "run RQ-2", "resume RQ-1", "accept RQ-1", "send-back RQ-1 -m No", env=env)
    stage.says(
        "status", "list", "next --all", "why RQ-1", "why RQ-2", "forecast", "show RQ-1", "runs", "locks", "logs RQ-1"
    )
    stage.says("report RQ-1", "clean RQ-1 --now", "doctor --full", "stop", "set RQ-1 priority=P0", "cancel RQ-1")
    stage.ended(running, "run RQ-1")
    _look(stage, "RQ-1")
    stage.says("cancel RQ-1", "locks")
    stage.next_second()
    running = stage.begin("run RQ-2")
    stage.wait_for("hangs")
    stage.kill(running)
    stage.says("locks", "list", "next", "why RQ-2", "forecast", "show RQ-2", "runs", "doctor")
    stage.says("doctor --full", "locks", "show RQ-2", "why RQ-2", "report RQ-2")
    stage.agent.forget()
    stage.says("resume RQ-2", "resume RQ-1 --answer 'Carry on'", "runs")


def auto(stage: Stage) -> None:
    """The backlog worked through, up to a limit, until stopped, and stopped by failures."""
    stage.configure("[auto]\nstop_after_needs_input = 2\n")
    for number in (1, 2, 3, 4, 5, 6):
        stage.request(f"RQ-{number}", priority=f"P{min(number - 1, 3)}")
    stage.request("RQ-7", depends_on="[RQ-1]")
    stage.request("RQ-8", status="wip")
    stage.commit()
    asks = "ask('Which one?') if call['request']['id'] in ('RQ-2', 'RQ-4', 'RQ-5') else done('Did it.')"
    stage.agent.does("implementer", f"write(call['request']['id'] + '.txt', 'x'); {asks}")
    stage.says("auto --last", "auto --max-runs 1", "auto --last", "auto --max-runs 2", "list", "stop")
    stage.says("auto", "auto --last", "why RQ-4", "next")
    stage.says("auto --last", "-c accept=auto auto --max-calls 1", env=JAPANESE)
    stage.request("RQ-9")
    stage.agent.does("implementer", HANG)
    running = stage.begin("auto")
    stage.wait_for("hangs")
    stage.says("auto", "status", "next", "list -s ready", "why RQ-7", "locks", "stop", "stop --now", "stop")
    stage.ended(running, "auto")
    stage.says("auto --last", "locks", "runs RQ-9", "why RQ-9")


def queue(stage: Stage) -> None:
    """Tasks of a queue in a real store, from their order to their end, and the runner that works on them."""
    stage.configure()
    for number in (1, 2, 3):
        stage.request(f"RQ-{number}", priority=f"P{number}")
    stage.request("RQ-4", status="draft")
    stage.commit()
    views = ("queue list", "queue counts", "queue", "queue runners", "queue", "queue namespaces")
    stage.says(*views, "runner --once", "queue add RQ-1 RQ-4 RQ-2", "queue add RQ-1", "queue add --prompt 'Say hello'")
    stage.says("queue add RQ-3 -p P0 --task-id mine", "queue add RQ-3 -p P0 --task-id mine", "queue add --auto")
    stage.says("queue add RQ-2 --task-id mine", "queue show mine", "queue show RQ-1", "queue cancel mine -y", *views)
    stage.says(
        "queue cancel mine -y", "queue show mine", "queue list -n 2", "queue list -s cancelled", "queue list -s error"
    )
    stage.says("queue list --all", "queue counts --all", "runners --all", "queue list --namespace other")
    refused = (
        *("queue add", "queue add RQ-99", "queue add RQ-4", "queue add RQ-1 --resume", "queue show TASK-0"),
        *("queue cancel TASK-0 -y", "queue cancel", "queue list --start TASK-0", "queue list -s done"),
        *("queue add RQ-1 --auto", "queue add --namespace 'a b' RQ-1", "queue add RQ-3 --answer Yes"),
    )
    for env in (None, JAPANESE):
        stage.says(*refused, env=env)
    tasks = stage.says("queue list -s queued")["tasks"]
    stage.says(*(f"queue cancel {task['task_id']} -y" for task in tasks if task["action"] in ("auto_run", "prompt")))
    asks = "ask('Red or green?') if call['request']['id'] == 'RQ-1' else done('Did it.')"
    stage.agent.does("implementer", f"write(call['request']['id'] + '.txt', 'x'); {asks}")
    stage.says("runner --once", *views, "show RQ-1", "why RQ-1")
    stage.says("queue", "queue runners", "queue list", env=JAPANESE)
    stage.agent.forget()
    asked = stage.says("queue add RQ-1 --resume -a Green")["tasks"][0]["task_id"]
    stage.says("runner --once", f"queue show {asked}", "queue list -s complete", "show RQ-1", "queue add RQ-1 --replan")
    _cancel_at_work(stage)


def _cancel_at_work(stage: Stage) -> None:
    """Cancel a task while a runner works on it."""
    stage.agent.does("implementer", HANG)
    task_id = stage.says("queue add RQ-3")["tasks"][0]["task_id"]
    running = stage.begin("runner --once")
    stage.wait_for("hangs")
    stage.says(
        "queue",
        "queue runners",
        "queue",
        "queue namespaces",
        "queue list",
        f"queue show {task_id}",
        "queue counts",
        "queue add RQ-3",
    )
    stage.says(f"queue cancel {task_id} -y")
    stage.ended(running, "runner --once")
    stage.says(f"queue show {task_id}", "queue", "queue runners", "show RQ-3", "locks")


# Those that need nothing but a folder; for the queue there has to be a store.
SCENES = (empty, backlog, edits, refusals, house, runs, accepting, in_progress, auto)
