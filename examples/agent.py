# The agent of agent.mjs without an SDK: Python's standard library and the gateway's HTTP port. examples/README.md says how.
#
#   AGENT_API_KEY=<a key with write scope> python3 examples/agent.py
import contextlib
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get('AGENT_URL', 'http://127.0.0.1:8080')
API_KEY = os.environ.get('AGENT_API_KEY', '')
AGENT = {'orgId': 'acme', 'teamId': 'search', 'agentId': os.environ.get('AGENT_NAME', 'crawler-2')}
STEPS = int(os.environ.get('AGENT_STEPS', '600'))
STEP_SECS = int(os.environ.get('AGENT_STEP_MS', '1000')) / 1000


class GatewayError(Exception):
    pass


def call(method, message, bearer=None):
    """Calls a method of proto/svc/governance/v1: its messages as JSON, by a POST."""
    request = urllib.request.Request(f'{URL}/svc.governance.v1.{method}', json.dumps(message).encode(), {'Content-Type': 'application/json'})
    if bearer:
        request.add_header('Authorization', f'Bearer {bearer}')
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise GatewayError(message_in(error)) from None
    except (OSError, http.client.HTTPException) as error:
        raise GatewayError(f'{URL} cannot be reached: {error}') from None
    except ValueError:
        raise GatewayError(f'the server at {URL} is not a gateway') from None


def message_in(error):
    try:
        return json.load(error)['message']
    except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
        return f'the server at {URL} with status {error.code} is not a gateway'  # a proxy before it, as while it restarts


def say(text):
    print(f'{time.strftime("%H:%M:%S", time.gmtime())}  {text}', flush=True)


def main():
    token = call('AgentService/RegisterAgent', {'agent': AGENT}, API_KEY)['credentialToken']
    trace = uuid.uuid4().hex

    def ask(span, action, resource):
        return call('PolicyService/CheckAction', {
            'agent': AGENT, 'credentialToken': token, 'traceId': trace, 'spanId': span, 'action': action, 'resource': resource,
        })

    # An action that no rule allows is never begun. No answer means no: the error ends the program here.
    refused = ask('clean-up', 'process.exec', 'rm -rf /')
    assert refused['decision'] == 'DECISION_DENY'
    say(refused['reason'])

    answer = ask('search', 'tool.call', 'web_search')
    if answer['decision'] != 'DECISION_ALLOW':
        sys.exit(answer['reason'])
    op_id = answer['opId']
    say(f'allowed, running as OP={op_id}')

    def complete(**spent):
        call('AgentService/CompleteOp', {'agent': AGENT, 'credentialToken': token, 'opId': op_id, **spent})

    try:
        for page in range(1, STEPS + 1):
            # Asked again under its name, a running operation is allowed, and one that an operator has paused or ended is denied.
            while (answer := ask('search', 'tool.call', 'web_search'))['decision'] != 'DECISION_ALLOW':
                if answer.get('opState') != 'OP_STATE_PAUSED':
                    sys.exit(f'stopped: {answer["reason"]}')
                time.sleep(STEP_SECS)
            time.sleep(STEP_SECS)
            say(f'read page {page}')
    except BaseException:
        # Nobody works on it any more, whatever the reason. One that was terminated is over without this.
        with contextlib.suppress(GatewayError):
            complete()
        raise
    complete(costUsd=0.002)
    say('done')


if not API_KEY:
    print('set AGENT_API_KEY to an API key with write scope: the gateway has shown one at its first start', file=sys.stderr)
    sys.exit(2)
try:
    main()
except GatewayError as error:
    sys.exit(str(error))
except KeyboardInterrupt:
    sys.exit(130)
