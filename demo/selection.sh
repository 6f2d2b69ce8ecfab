#!/usr/bin/env bash
# Shows the selection at work on a made-up backlog, in a throw-away repository, and runs one request.
#
#   demo/selection.sh [PROGRAM]     PROGRAM: the aiflow to use (default: the one of `make setup`)
#   KEEP=1                          keep the repository and say where it is
#   AIFLOW_LANG=ja|en               the language (default: the locale's)
set -euo pipefail
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_EXTERNAL_DIFF

absolute() {
  (cd "$(dirname "$1")" && printf '%s/%s\n' "$PWD" "$(basename "$1")")
}

here=$(dirname "$(absolute "${BASH_SOURCE[0]}")")
program=${1:-$here/../.venv/bin/aiflow}
case $program in
  */*) program=$(absolute "$program") ;;
  *) program=$(command -v "$program") ;;
esac
[ -x "$program" ] || { echo "No program at $program: run 'make setup' first." >&2; exit 3; }

locale=${LC_ALL:-${LC_MESSAGES:-${LANG:-}}}
language=${AIFLOW_LANG:-$locale}
case $language in
  ja*) language=ja ;;
  *) language=en ;;
esac
# Nobody's own settings, aiflow's or git's: everybody sees the same.
for name in ${!AIFLOW_@}; do unset "$name"; done
export AIFLOW_LANG=$language GIT_CONFIG_GLOBAL=/dev/null GIT_PAGER=cat
export GIT_AUTHOR_NAME=Mika GIT_AUTHOR_EMAIL=mika@example.com
export GIT_COMMITTER_NAME=Mika GIT_COMMITTER_EMAIL=mika@example.com

folder=$(mktemp -d "${TMPDIR:-/tmp}/aiflow-demo.XXXXXX")
trap '[ "${KEEP:-}" = 1 ] || rm -rf "$folder"' EXIT
export XDG_STATE_HOME=$folder/state
mkdir "$folder/shop"
cd "$folder/shop"
git init -q -b main .
mkdir requests

# say ENGLISH JAPANESE: print the one that is spoken.
say() {
  case $language in
    ja) printf '%s\n' "$2" ;;
    *) printf '%s\n' "$1" ;;
  esac
}

# request NUMBER ENGLISH-TITLE JAPANESE-TITLE: write a request file, its metadata from standard input.
request() {
  { cat; printf '\n# %s\n' "$(say "$2" "$3")"; } >"requests/RQ-$1.md"
}

# show ENGLISH JAPANESE COMMAND...: say what comes, show the command line as at a prompt, run it.
show() {
  printf '\n# %s\n' "$(say "$1" "$2")"
  shift 2
  printf '$ %s\n' "$*"
  case $1 in
    aiflow) shift; "$program" "$@" ;;
    *) "$@" ;;
  esac
}

request 001 "Run the tests on every push" "push のたびにテストを実行する" <<'END'
---
priority: P1
status: done
created_at: 2026-11-02
updated_at: 2026-11-04
---
END
# 09:00 in Japan is midnight UTC: earlier than half past midnight UTC below, though it looks later.
request 002 "Fix the crash on an empty password" "空のパスワードで落ちる不具合を直す" <<'END'
---
priority: P0
status: ready
depends_on: [RQ-001]
created_at: 2026-11-02T08:00:00+09:00
updated_at: 2026-11-05T09:00:00+09:00
---
END
request 003 "Show the reason when a login fails" "ログイン失敗の理由を表示する" <<'END'
priority: P0
status: ready
created_at: 2026-11-02T00:10:00Z
updated_at: 2026-11-05T00:30:00Z
END
request 004 "Lock an account after ten failed logins" "10回のログイン失敗でアカウントをロックする" <<'END'
---
priority: P1
status: ready
depends_on: [RQ-002, RQ-003]
created_at: 2026-11-02
updated_at: 2026-11-03
---
END
request 005 "Move the sessions to the new store" "セッションを新しいストアへ移す" <<'END'
---
priority: P1
status: blocked   # which store? ask Mika
created_at: 2026-11-02
updated_at: 2026-11-03
---
END
request 006 "Log out on all devices" "すべての端末からログアウトする" <<'END'
---
priority: P1
status: ready
depends_on: [RQ-004, RQ-005]
created_at: 2026-11-02
updated_at: 2026-11-02
---
END
request 007 "Sign in with a passkey" "パスキーでサインインする" <<'END'
---
priority: P2
status: draft
created_at: 2026-11-02
updated_at: 2026-11-02
---
END
request 008 "Split the user table" "ユーザーテーブルを分割する" <<'END'
---
priority: P2
status: ready
depends_on: [RQ-009]
created_at: 2026-11-02
updated_at: 2026-11-02T12:00:00Z
---
END
request 009 "Rename the user columns" "ユーザーテーブルの列名を変える" <<'END'
---
priority: P3
status: ready
depends_on: [RQ-008]
created_at: 2026-11-02
updated_at: 2026-11-02
---
END
request 010 "Close the open redirect" "オープンリダイレクトを塞ぐ" <<'END'
---
priority: P9      # very urgent!
status: ready
created_at: 2026-11-02
updated_at: 2026-11-02
---
END
# What the demo agent is to do about it.
{
  printf '\n## %s\n\n' "$(say "Allow only our own addresses" "自サイトのアドレスだけを許可する")"
  printf '```write redirect.py\n%s\n```\n' 'def is_allowed(url): return url.startswith("/") and not url.startswith("//")'
} >>requests/RQ-010.md
"$program" init >/dev/null
git add .
git commit -q -m "A backlog"

say "A backlog of ten requests, one Markdown file each." \
  "10件の request からなるバックログです（1件が1つの Markdown ファイル）。"
show "The backlog, in the order of selection:" "バックログを選定順に並べます:" \
  aiflow list
show "What runs next, and why not the others?" "次に実行されるのはどれで、ほかはなぜ選ばれないのでしょうか。" \
  aiflow next
show "One of them in full: who waits for whom, down to the roots, and the command that mends it." \
  "1件を詳しく見ます。何を待っているかを根元までたどり、解決するコマンドを示します。" \
  aiflow why RQ-006
show "Two requests wait for each other." "互いを待っている2件があります。" \
  aiflow why RQ-008
show "The whole order, if every run succeeds, and what is never reached." \
  "すべての run が成功した場合の実行順と、決して実行されないものです。" \
  aiflow forecast
show "Now mend things. The file with the mistake is the urgent one:" "では直していきます。誤りのあるファイルが、実は最も急ぎでした:" \
  aiflow set RQ-010 priority=P0
show "Only the value has changed; the comment beside it is still there." "変わったのは値だけです。横のコメントも残っています。" \
  git diff -U0
show "Mika has answered:" "Mika さんから回答がありました:" \
  aiflow set RQ-005 status=ready
show "And the circle is cut where 'why' said:" "循環は why が示したところで断ちます:" \
  aiflow set RQ-008 'depends_on=[]'
show "The mended request comes first now." "直した request が先頭になりました。" \
  aiflow next
show "And everything that is ready is reached." "ready のものはすべて実行されます。" \
  aiflow forecast
show "Let the built-in demo agent work on it. It needs no key and writes what the request tells it to." \
  "組み込みのデモ用エージェントにやらせてみます。キーは要りません。request に書いてあるとおりにファイルを書きます。" \
  aiflow -c agent.kind=demo run RQ-010
branch=$(git branch --format '%(refname:short)' --list 'aiflow/*')
show "What it did is on a branch of its own; your checkout is untouched." \
  "結果は専用のブランチにあります。手元のチェックアウトはそのままです。" \
  git diff --stat "main...$branch"

if [ "${KEEP:-}" = 1 ]; then
  printf '\n%s %s\n' "$(say "The repository is kept in" "リポジトリはここに残してあります:")" "$folder/shop"
fi
