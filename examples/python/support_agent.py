"""A support agent with a budget, and people who decide about large refunds.

SVC_POLICY_PATH=examples/policies/support-agent.yaml npm start         # in one terminal
SVC_API_KEY=svc_... python3 examples/python/support_agent.py           # in another, with the key it has shown

The second refund waits for a person: approve it in the dashboard or by `svc approvals approve <id>`, with a credential
other than the one the agent uses.
"""

import os
from typing import Any

from svc_gateway import ActionDeniedError, AgentClient

AGENT = os.environ.get('SVC_AGENT') or 'acme/support/desk-1'
ORDER = {'id': 'o-17', 'total_usd': 120, 'currency': 'USD'}


def main() -> None:
    with AgentClient(agent=AGENT) as client:

        @client.guard('payments.refund')
        def refund(order: dict[str, Any], amount_usd: float) -> str:
            return f'refunded {amount_usd} of {order["id"]}'

        @client.guard('crm.find_customers')
        def find_customers(name: str, limit: int) -> dict[str, Any]:
            print(f'asked for {limit} customers')
            return {'customers': [{'name': name, 'card_number': '4111 1111 1111 1111'}]}

        # The rule caps the limit, and hides card numbers in the result.
        print(find_customers('Ada', limit=500))
        # A model call: its estimate is reserved in the budget, and what it has cost is recorded.
        with client.run('llm.call', 'large-model', estimated_cost_usd=0.2) as op:
            print('the model answers; budget:', op.record_usage(0.13).status)
        try:
            with client.run('llm.call', 'large-model', estimated_cost_usd=9):
                print('never printed')
        except ActionDeniedError as denied:
            print('DENIED', denied.reason)
        print(refund(ORDER, 30))
        print('waiting for a person to decide about 100 USD', flush=True)
        try:
            print(refund(ORDER, 100))
        except ActionDeniedError as denied:
            print('DENIED', denied.reason)


if __name__ == '__main__':
    main()
