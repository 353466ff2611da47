"""The options of a client, and the check for mistakes in them before anything is sent."""

from __future__ import annotations

import os
import re
import ssl
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from .types import AgentId, AgentLike, Notice, OpSignal

LONGEST_SECONDS = 86_400.0


@dataclass(frozen=True)
class Settings:
    url: str
    agent: AgentId
    credential_token: str | None
    api_key: str | None
    parent: AgentId | None
    on_unreachable: Literal['allow', 'deny']
    check_timeout: float
    call_timeout: float
    approval_timeout: float
    outage_timeout: float
    close_timeout: float
    poll_interval: float
    max_connections: int
    ssl_context: ssl.SSLContext | None
    grpc_address: str | None
    use_httpx: bool
    on_warning: Callable[[Exception], None]
    on_notice: Callable[[Notice], None]
    on_signal: Callable[[OpSignal], object]


def settings_of(
    url: str | None,
    agent: AgentLike | None,
    credential_token: str | None,
    *,
    api_key: str | None = None,
    parent: AgentLike | None = None,
    on_unreachable: Literal['allow', 'deny'] = 'deny',
    check_timeout: float = 5.0,
    call_timeout: float = 10.0,
    approval_timeout: float = 900.0,
    outage_timeout: float = 1.0,
    close_timeout: float = 5.0,
    poll_interval: float = 1.0,
    max_connections: int = 256,
    ssl_context: ssl.SSLContext | None = None,
    grpc_address: str | None = None,
    use_httpx: bool = False,
    on_warning: Callable[[Exception], None] | None = None,
    on_notice: Callable[[Notice], None] | None = None,
    on_signal: Callable[[OpSignal], object] | None = None,
    env: Mapping[str, str] | None = None,
) -> Settings:
    """Raises TypeError or ValueError with the option that is wrong. What is not given is read from the environment."""
    env = os.environ if env is None else env
    if credential_token is None and api_key is None:
        credential_token = env.get('SVC_AGENT_TOKEN') or None
        api_key = None if credential_token is not None else env.get('SVC_API_KEY') or None
    elif credential_token is not None and api_key is not None:
        raise TypeError('set only one of credential_token and api_key')
    if credential_token is None and api_key is None:
        raise ValueError("no credential: pass the agent's credential_token or an api_key, or set SVC_AGENT_TOKEN")
    if parent is not None and api_key is None:
        raise TypeError('parent needs an api_key: it is recorded when the agent is registered')
    agent = agent if agent is not None else env.get('SVC_AGENT') or None
    if agent is None:
        raise ValueError('no agent: pass <org>/<team>/<agent>, or set SVC_AGENT')
    if on_unreachable not in ('allow', 'deny'):
        raise ValueError("on_unreachable must be 'deny' or 'allow'")
    if not isinstance(max_connections, int) or not 1 <= max_connections <= 10_000:
        raise ValueError('max_connections must be a whole number from 1 to 10000')
    return Settings(
        url=_url(url or env.get('SVC_GATEWAY_URL') or 'http://127.0.0.1:8080'),
        agent=AgentId.of(agent),
        credential_token=None if credential_token is None else _secret(credential_token, 'credential_token'),
        api_key=None if api_key is None else _secret(api_key, 'api_key'),
        parent=None if parent is None else AgentId.of(parent),
        on_unreachable=on_unreachable,
        check_timeout=_seconds(check_timeout, 0.001, 'check_timeout'),
        call_timeout=_seconds(call_timeout, 0.001, 'call_timeout'),
        approval_timeout=_seconds(approval_timeout, 0, 'approval_timeout'),
        outage_timeout=_seconds(outage_timeout, 0, 'outage_timeout'),
        close_timeout=_seconds(close_timeout, 0, 'close_timeout'),
        poll_interval=_seconds(poll_interval, 0.01, 'poll_interval'),
        max_connections=max_connections,
        ssl_context=ssl_context,
        grpc_address=grpc_address,
        use_httpx=use_httpx,
        on_warning=on_warning or _warn,
        on_notice=on_notice or _show,
        on_signal=on_signal or (lambda _signal: None),
    )


def _url(text: str) -> str:
    parts = urlsplit(text)
    try:
        sound = parts.scheme in ('http', 'https') and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        sound = None
    if not sound or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("url must be that of the gateway's HTTP port, such as http://127.0.0.1:8080")
    return text.rstrip('/')


def _secret(text: str, name: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f'{name} must be a string')
    if text == '':
        raise ValueError(f'{name} is empty; check that the variable it comes from is set')
    if not re.fullmatch(r'[\x21-\x7e]+', text):
        raise ValueError(f'{name} must consist of visible ASCII characters')
    return text


def _seconds(given: float, least: float, name: str) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f'{name} must be a number of seconds')
    if not least <= given <= LONGEST_SECONDS:
        raise ValueError(f'{name} must be from {least} to {LONGEST_SECONDS:.0f} seconds')
    return float(given)


def _warn(error: Exception) -> None:
    warnings.warn(str(error), RuntimeWarning, stacklevel=2)


def _show(notice: Notice) -> None:
    warnings.warn(f'{notice.message} (operation {notice.op_id})', UserWarning, stacklevel=2)
