"""The client for agents in Python: it asks the svc-gateway before every action, and obeys its operators."""

from .client import AgentClient, AsyncAgentClient
from .errors import ActionDeniedError, ClientClosedError, GatewayError, OpTerminatedError
from .runs import AsyncOp, AsyncRun, Op, Run
from .types import (
    Action,
    AgentId,
    Approval,
    CheckAnswer,
    Notice,
    Obligation,
    OpSignal,
    Usage,
    UsageAnswer,
)

__version__ = '0.2.0'

__all__ = [
    'Action',
    'ActionDeniedError',
    'AgentClient',
    'AgentId',
    'Approval',
    'AsyncAgentClient',
    'AsyncOp',
    'AsyncRun',
    'CheckAnswer',
    'ClientClosedError',
    'GatewayError',
    'Notice',
    'Obligation',
    'Op',
    'OpSignal',
    'OpTerminatedError',
    'Run',
    'Usage',
    'UsageAnswer',
]
