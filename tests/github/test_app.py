"""Working as a GitHub App: signed by its key, a token for this repository only, made anew before it ends."""

from __future__ import annotations

import base64
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from aiflow.adapters.github_issues.client import GitHubClient
from aiflow.adapters.github_issues.connect import connect
from aiflow.adapters.toml_settings import load_settings
from aiflow.domain.issues.issue import Account
from aiflow.errors import AiflowError
from github.call import AppRow
from github.scene import Scene

also_by_description = pytest.mark.parametrize(
    "way", ["direct", pytest.param("prism", marks=pytest.mark.contract)], indirect=True
)

BOT = "night-shift[bot]"


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


@pytest.fixture
def app(scene: Scene, key: rsa.RSAPrivateKey, tmp_path: Path) -> AppRow:
    """An App that checks signatures as GitHub does, and the key where the settings say."""
    (tmp_path / "app.pem").write_bytes(pem(key))
    scene.hub.person(BOT, "write", is_bot=True)

    def check(token: str) -> dict[str, Any] | None:
        head, claims, signature = token.split(".")
        said: dict[str, Any] = json.loads(decoded(claims))
        assert json.loads(decoded(head)) == {"alg": "RS256", "typ": "JWT"}
        try:
            signed = f"{head}.{claims}".encode()
            key.public_key().verify(decoded(signature), signed, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return None
        now = scene.hub.now().timestamp()
        is_valid = said["iat"] <= now < said["exp"] <= now + 600
        return said if is_valid else None

    scene.api.app = AppRow(41, "night-shift", check)
    return scene.api.app


def client_of(scene: Scene, tmp_path: Path, app_id: int = 41) -> GitHubClient:
    url = f"github.api_url={scene.url}"
    flags = ("github.repo=octo/demo", url, f"github.app_id={app_id}", "github.app_key_path=app.pem")
    settings = load_settings(Path("/nowhere"), {}, flags)
    client = connect(tmp_path, settings, {}, scene.time, scene.transport())
    scene.clients.append(client)
    return client


@also_by_description
def test_an_app_writes_as_its_own_account(scene: Scene, app: AppRow, tmp_path: Path) -> None:
    number = scene.hub.open_issue("For the App")
    client = client_of(scene, tmp_path)
    assert client.account() == Account(BOT, scene.hub.user(BOT).id, is_bot=True)
    posted = client.comment(number, "by the App")
    assert posted.author == Account(BOT, scene.hub.user(BOT).id, is_bot=True)
    assert len(app.tokens) == 1
    (asked,) = (ask.body for ask in scene.api.calls if ask.path.endswith("/access_tokens"))
    assert asked == {"repositories": ["demo"]}


@also_by_description
def test_a_token_is_made_anew_before_it_ends(scene: Scene, app: AppRow, tmp_path: Path) -> None:
    client = client_of(scene, tmp_path)
    client.labels()
    scene.time.sleep(54 * 60)
    client.labels()
    assert len(app.tokens) == 1
    scene.time.sleep(2 * 60)
    client.labels()
    assert len(app.tokens) == 2


def test_a_token_that_ended_early_is_made_anew_once_also_for_a_write(scene: Scene, app: AppRow, tmp_path: Path) -> None:
    number = scene.hub.open_issue("Interrupted")
    client = client_of(scene, tmp_path)
    client.labels()
    app.tokens = dict.fromkeys(app.tokens, scene.hub.now() - timedelta(seconds=1))
    assert client.comment(number, "once").body == "once"
    assert len(scene.hub.rows[number].comments) == 1


def refusal(client: GitHubClient) -> str:
    with pytest.raises(AiflowError) as caught:
        client.labels()
    return caught.value.reason_code


def test_an_app_that_is_not_installed_there_sees_no_repository(scene: Scene, app: AppRow, tmp_path: Path) -> None:
    app.is_installed = False
    assert refusal(client_of(scene, tmp_path)) == "GITHUB_NOT_FOUND"


def test_an_app_that_github_does_not_know_is_refused(scene: Scene, app: AppRow, tmp_path: Path) -> None:
    assert refusal(client_of(scene, tmp_path, app_id=42)) == "GITHUB_TOKEN_INVALID"
    assert len(scene.api.calls) == 1


def test_what_is_no_key_signs_nothing(scene: Scene, app: AppRow, tmp_path: Path) -> None:
    path = tmp_path / "app.pem"
    other = ec.generate_private_key(ec.SECP256R1())
    for content in (b"", b"-----BEGIN RSA PRIVATE KEY-----\nno\n-----END RSA PRIVATE KEY-----\n", pem(other)):
        path.write_bytes(content)
        assert refusal(client_of(scene, tmp_path)) == "GITHUB_NOT_SIGNED_IN"
    path.unlink()
    assert refusal(client_of(scene, tmp_path)) == "GITHUB_NOT_SIGNED_IN"
    assert scene.api.calls == []
