"""Options and the environment: what is wrong is said before anything is sent."""

import subprocess
import sys
from pathlib import Path

import pytest

from svc_gateway import AgentId
from svc_gateway.settings import settings_of

TOKEN = 'svcagent_0123456789'


def test_what_is_not_given_is_read_from_the_environment() -> None:
    env = {
        'SVC_GATEWAY_URL': 'http://gw:1/',
        'SVC_AGENT': 'acme/search/c1',
        'SVC_AGENT_TOKEN': TOKEN,
        'SVC_API_KEY': 'k',
    }
    settings = settings_of(None, None, None, env=env)
    assert settings.url == 'http://gw:1'
    assert settings.agent == AgentId('acme', 'search', 'c1')
    assert (settings.credential_token, settings.api_key) == (TOKEN, None)


def test_an_api_key_of_the_environment_counts_without_a_token() -> None:
    settings = settings_of(None, 'a/b/c', None, env={'SVC_API_KEY': 'key'})
    assert (settings.url, settings.credential_token, settings.api_key) == ('http://127.0.0.1:8080', None, 'key')


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        ({'agent': None}, 'no agent'),
        ({'agent': 'acme/search'}, 'acme/search/crawler-1'),
        ({'agent': 'acme//x'}, 'team_id is empty'),
        ({'agent': {'org': 'acme'}}, "unknown key 'org'"),
        ({'agent': 7}, 'agent must be'),
        ({'credential_token': None}, 'SVC_AGENT_TOKEN'),
        ({'credential_token': ''}, 'credential_token is empty'),
        ({'credential_token': 'a b'}, 'visible ASCII'),
        ({'api_key': 'x'}, 'only one of'),
        ({'parent': 'a/b/c'}, 'parent needs an api_key'),
        ({'url': '127.0.0.1:8080'}, 'http://127.0.0.1:8080'),
        ({'url': 'ftp://x'}, 'http://127.0.0.1:8080'),
        ({'url': 'http://user:pw@x'}, 'http://127.0.0.1:8080'),
        ({'url': 'http://x:99999'}, 'http://127.0.0.1:8080'),
        ({'on_unreachable': 'maybe'}, "'deny' or 'allow'"),
        ({'check_timeout': 0}, 'check_timeout'),
        ({'check_timeout': float('nan')}, 'check_timeout'),
        ({'check_timeout': '5'}, 'number of seconds'),
        ({'max_connections': 0}, 'max_connections'),
    ],
)
def test_a_mistake_in_an_option_is_named(options: dict, message: str) -> None:
    given = {'url': 'http://x', 'agent': 'a/b/c', 'credential_token': TOKEN, **options}
    url, agent, token = given.pop('url'), given.pop('agent'), given.pop('credential_token')
    with pytest.raises((TypeError, ValueError), match=message):
        settings_of(url, agent, token, env={}, **given)


def test_a_dash_stands_for_no_organization() -> None:
    assert AgentId.of('-/search/c1') == AgentId('', 'search', 'c1')
    assert str(AgentId('', 'search', 'c1')) == '-/search/c1'


def test_the_package_needs_nothing_but_the_standard_library() -> None:
    source = str(Path(__file__).resolve().parents[1] / 'src')
    code = f'import sys; sys.path.insert(0, {source!r}); import svc_gateway, svc_gateway.testing; print("ok")'
    done = subprocess.run([sys.executable, '-S', '-c', code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ('ok\n', '')
