"""Secrets (AGT-4, SEC): what counts as one, and that nothing else is touched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aiflow.adapters.secrets import LEAST_SECRET, Masker, is_secret_name

NOBODY = Masker({})


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    "name",
    [
        *(
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ),
        *("DB_PASSWORD", "PGPASSWORD", "MYSQL_PASSWD", "DOCKER_AUTH_CONFIG", "SENTRY_DSN", "SESSION_COOKIE"),
        *("NPM_CONFIG__AUTH", "AUTHORIZATION", "GOOGLE_CREDENTIALS", "PRIVATE_PEM", "my_token", "Secret"),
    ],
)
def test_a_variable_that_holds_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret_name(name)
    assert Masker({name: "a-value-of-some-length"}).mask(b"x a-value-of-some-length y") == b"x *** y"


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    "name",
    [
        *(
            "PATH",
            "HOME",
            "USER",
            "LANG",
            "SSH_AUTH_SOCK",
            "AWS_ACCESS_KEY_ID",
            "SSL_KEY_FILE",
            "TOKEN_PATH",
            "GPG_KEY_ID",
        ),
        *("XDG_SESSION_TYPE", "XDG_SESSION_DESKTOP", "DESKTOP_SESSION", "GDMSESSION", "SESSION_MANAGER", "XAUTHORITY"),
        *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "AUTHOR", "DBUS_SESSION_BUS_ADDRESS", "KEY_DIR", "CREDENTIALS_HOME"),
    ],
)
def test_one_that_only_says_where_something_is_or_who_somebody_is_is_none(name: str) -> None:
    assert not is_secret_name(name)
    assert Masker({name: "a-value-of-some-length"}).mask(b"a-value-of-some-length") == b"a-value-of-some-length"


@pytest.mark.spec("AGT-4")
def test_a_value_too_short_to_be_a_secret_is_left_alone() -> None:
    masker = Masker({"A_KEY": "x" * (LEAST_SECRET - 1), "B_KEY": "y" * LEAST_SECRET, "C_TOKEN": "", "D_TOKEN": "true"})
    assert masker.mask(b"xxxxxxx true yyyyyyyy") == b"xxxxxxx true ***"


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    "value", ["postgres", "Password", "database", "http://localhost:3000", "https://id.example.com/"]
)
def test_a_value_that_everybody_knows_is_no_secret(value: str) -> None:
    text = f'{{"paths": ["src/{value}/a.py"]}}'.encode()
    assert Masker({"DB_PASSWORD": value, "NEXTAUTH_URL": value}).mask(text) == text


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    "value",
    ["postgres1", "password123", "redis://:hunter2hunter2@host", "https://hooks.example.com/services/T0/xyz"],
)
def test_what_only_looks_like_such_a_value_is_one(value: str) -> None:
    assert value.encode() not in Masker({"DB_PASSWORD": value}).mask(f"x {value} y".encode())


@pytest.mark.spec("AGT-4")
def test_the_longer_of_two_secrets_is_masked_whole() -> None:
    masker = Masker({"A_KEY": "abcdefgh", "B_KEY": "abcdefgh-and-more", "C_KEY": "more.*[special](chars)"})
    assert masker.mask(b"abcdefgh-and-more abcdefgh more.*[special](chars)") == b"*** *** ***"


@pytest.mark.spec("AGT-4")
def test_a_secret_of_several_lines_is_masked_line_by_line_and_inside_json() -> None:
    value = '{\n  "type": "service_account",\n  "key": "MIIEvQIBADAN"\n}'
    masker = Masker({"GOOGLE_CREDENTIALS": value})
    assert b"MIIEvQIBADAN" not in masker.mask(b'  "key": "MIIEvQIBADAN"\r\n')
    for is_ascii in (True, False):
        inside = json.dumps({"log": f"日本 {value}"}, ensure_ascii=is_ascii).encode()
        assert json.loads(masker.mask(inside)) == {"log": "日本 ***"}


@pytest.mark.spec("AGT-4")
def test_a_secret_that_is_no_utf_8_is_masked_too() -> None:
    assert Masker({"A_KEY": "abc\udcffdefgh"}).mask(b"x abc\xffdefgh y") == b"x *** y"


TOKENS = [
    "ghp_" + "a1" * 18,
    *(f"gh{kind}_" + "a1" * 18 for kind in "ours"),
    "github_pat_" + "a1_" * 20,
    "glpat-" + "a1-_" * 6,
    "sk-ant-api03-" + "a1-_" * 20,
    "sk-proj-" + "a1" * 20,
    "AKIA" + "A1" * 8,
    "ASIA" + "A1" * 8,
    "xoxb-" + "123456789012-abc",
    "AIza" + "a1_-5" * 7,
    "npm_" + "a1" * 18,
    "pypi-" + "a1" * 30,
    "hf_" + "a1" * 17,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlMTIz",
]


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.parametrize("token", TOKENS)
def test_what_looks_like_a_token_is_masked_whoever_it_belongs_to(token: str) -> None:
    for text in (token, f"token={token}", f'"{token}"', f"x {token}\n", f"({token})"):
        assert NOBODY.mask_text(text) == text.replace(token, "***")


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("git clone https://me:hunter2@host/x", "git clone https://me:***@host/x"),
        ("postgres://user:p%40ss@db:5432/x?y=z", "postgres://user:***@db:5432/x?y=z"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic ***"),
        ("-H 'Authorization: token abc' -v", "-H 'Authorization: token ***' -v"),
        ('{"authorization":"Bearer zzzz1234zzzz"}', '{"authorization":"Bearer ***"}'),
        (r'"{\"Authorization\": \"Bearer zzzz1234zzzz\"}"', r'"{\"Authorization\": \"Bearer ***\"}"'),
        ("authorization: 'Bearer zzzz1234zzzz'", "authorization: 'Bearer ***'"),
        ("{'proxy-authorization' : 'basic dXNlcjpwYXNz'}", "{'proxy-authorization' : 'basic ***'}"),
        (r'"Host: x\nAuthorization: Bearer abc\n"', r'"Host: x\nAuthorization: Bearer ***\n"'),
        ("x-api-key: zzzz1234zzzz", "x-api-key: ***"),
        ("X-Goog-Api-Key:zzzz1234zzzz==", "X-Goog-Api-Key:***"),
        ('{"x-api-key": "zzzz1234zzzz"}', '{"x-api-key": "***"}'),
        (r"curl -H \"api-key: zzzz-1234.zzzz\"", r"curl -H \"api-key: ***\""),
        ("x-api-key: 'zzzz1234zzzz'", "x-api-key: '***'"),
    ],
)
def test_secrets_in_addresses_and_headers_are_masked(text: str, masked: str) -> None:
    assert NOBODY.mask_text(text) == masked


BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n" * 3
KEYS = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"]


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("head", ["", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,1A2B\n\n"])
def test_a_private_key_is_masked_also_inside_json_and_without_its_end(kind: str, head: str) -> None:
    key = f"-----BEGIN {kind}-----\n{head}{BODY}-----END {kind}-----\n"
    masked = f"-----BEGIN {kind}-----***-----END {kind}-----\n"
    assert NOBODY.mask_text(f"before\n{key}behind") == f"before\n{masked}behind"
    assert json.loads(NOBODY.mask_text(json.dumps({"summary": f"see {key}!"}))) == {"summary": f"see {masked}!"}
    assert "MIIE" not in NOBODY.mask_text(key[:120])


@pytest.mark.spec("AGT-4", "SEC")
@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=hunter2", "password=***"),
        ("DB_PASSWORD=correcthorse make", "DB_PASSWORD=*** make"),
        ("--password='hunter2!' --user me", "--password='***' --user me"),
        ("user=me&password=hunter2&x=y", "user=me&password=***&x=y"),
        ("password: hunter2", "password: ***"),
        ("  Password: s3cr3t!", "  Password: ***"),
        ('{"password": "correct horse"}', '{"password": "***"}'),
        (r'"{\"passwd\": \"hunter2\"}"', r'"{\"passwd\": \"***\"}"'),
        ("passphrase: 'tr0ub4dor'", "passphrase: '***'"),
        ("Server=db;Uid=me;Pwd=hunter2;Timeout=3", "Server=db;Uid=me;Pwd=***;Timeout=3"),
        ("Server=db;User Id=me;Password=a+b/c;", "Server=db;User Id=me;Password=***;"),
        ("AccountName=x;AccountKey=abcd1234+/==;EndpointSuffix=y", "AccountName=x;AccountKey=***;EndpointSuffix=y"),
        (
            "Endpoint=sb://x/;SharedAccessKey=abcd1234=;EntityPath=q",
            "Endpoint=sb://x/;SharedAccessKey=***;EntityPath=q",
        ),
        ("redis://:hunter2@cache:6379/0", "redis://:***@cache:6379/0"),
        ("mongodb+srv://me:hunter2@c0.example.net/db", "mongodb+srv://me:***@c0.example.net/db"),
        ("client_secret=abcdef123", "client_secret=***"),
    ],
)
def test_passwords_and_connection_strings_are_masked(text: str, masked: str) -> None:
    assert NOBODY.mask_text(text) == masked
    assert json.loads(NOBODY.mask_text(json.dumps({"summary": text})))["summary"] == masked


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    "text",
    [
        "def login(user: str, password: str) -> bool:",
        "connect(user, password=self.password, timeout=3)",
        "connect(password=get_password())",
        "password=${DB_PASSWORD} password: {{ secret }} password=<yours> password=%s",
        "password: required, password: string; the password: it is asked for",
        "password=None password=user_password",
        '{"password": "string", "passwordLength": 12, "password": 12345678}',
        'if b"-----BEGIN PRIVATE KEY-----" in data: # -----BEGIN RSA PRIVATE KEY-----',
        "the password field, forgot password?, PWD=/home/me",
    ],
)
def test_what_only_speaks_of_passwords_stays(text: str) -> None:
    assert NOBODY.mask_text(text) == text


@pytest.mark.spec("AGT-4")
@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:3000/path",
        "ssh://git@host:22/x",
        "git@github.com:owner/name.git",
        "a task-force-of-more-than-twenty-letters",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "sk-short ghp_short AKIA_no eyJ.x.y",
        "Authorization: the bearer of this",
        '{"Authorization": "Bearer ${TOKEN}"} "Authorization": "Bearer " + token',
        "x-api-key: required, api-key: string, the x-api-key: header",
        '{"x-api-key": process.env.ANTHROPIC_API_KEY, "api-key": "${KEY_2025_LONG}"}',
        "api-key:\n  2025-11-04-a-new-one",
        "api-key: v2",
        "日本語 ä \\ {answer}",
        "",
    ],
)
def test_everything_else_stays(text: str) -> None:
    assert NOBODY.mask_text(text) == text


@pytest.mark.spec("AGT-3", "AGT-4")
@pytest.mark.parametrize(
    "summary",
    [
        "send 'Authorization: Bearer abc'",
        "Authorization: Bearer abc",
        "http://localhost:3000",
        "https://me:hunter2@host",
        f"token {TOKENS[0]}",
        'a "quoted" https://me:x"y@host',
        '{"authorization":"Bearer zzzz1234zzzz"}',
        "x-api-key: \nzzzz1234zzzz",
        "x-api-key: ",
        "authorization: bearer ",
    ],
)
def test_an_answer_that_is_masked_is_still_the_same_json(summary: str) -> None:
    answer = {"status": "done", "summary": summary, "question": "who@where", "x-api-key": 1234567890}
    for separators in ((",", ":"), (", ", ": ")):
        masked = json.loads(NOBODY.mask(json.dumps(answer, separators=separators).encode()))
        assert list(masked) == list(answer)
        assert (masked["status"], masked["question"]) == ("done", "who@where")


@pytest.mark.spec("AGT-4")
@given(st.binary(max_size=100), st.integers(0, 100))
def test_nothing_raises_and_a_cut_never_divides_a_secret(noise: bytes, at: int) -> None:
    masker = Masker({"A_KEY": "s3cretValue"})
    text = noise + b" s3cretValue " + TOKENS[0].encode() + b" " + noise
    at = min(at, len(text))
    cut = masker.find_cut(text, at)
    assert 0 <= cut <= at
    masked = masker.mask(text[:cut]) + masker.mask(text[cut:])
    assert b"s3cretValue" not in masked
    assert TOKENS[0][4:].encode() not in masked


@pytest.mark.spec("AGT-4")
def test_half_a_character_does_not_raise() -> None:
    assert NOBODY.mask_text("a\ud800b") == "a\\ud800b"


@pytest.mark.spec("SEC", "AGT-4")
@pytest.mark.parametrize("before", ["\\n", "\\t", "\\u00e9", " ", '"', "é", "="])
def test_a_token_is_seen_wherever_a_line_begins_in_json(before: str) -> None:
    token = "ghp_" + "a1B2" * 9
    assert token.encode() not in Masker({}).mask(f'{{"summary": "the key:{before}{token}"}}'.encode())


@pytest.mark.spec("SEC")
@pytest.mark.parametrize("name", ["DB_PASS", "MYSQL_PWD", "KEY_PASSPHRASE", "ANTHROPIC_CUSTOM_HEADERS", "AWS_CREDS"])
def test_more_names_of_secrets(name: str) -> None:
    assert Masker({name: "hunter2-hunter2"}).mask(b"it is hunter2-hunter2") == b"it is ***"
